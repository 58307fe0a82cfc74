import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { readOomCounters, readRam } from '../../src/supervisor/memory-use.ts';

const roots: string[] = [];

/** A root folder with these files in it. */
function rootWith(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'snug-root-'));
  roots.push(root);
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), text);
  }
  return root;
}
afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true });
});

const V2_MOUNT = '29 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n';
const V1_MOUNT = '35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:4 - cgroup cgroup rw,memory\n';

it('reads version 2: kills of our group, the smallest limit above it', () => {
  const group = 'sys/fs/cgroup/kube/pod7/run1';
  const root = rootWith({
    'proc/self/cgroup': '0::/kube/pod7/run1\n',
    'proc/self/mountinfo': V2_MOUNT,
    'proc/vmstat': 'pgfault 5\noom_kill 12\n',
    [`${group}/memory.events`]: 'low 0\nhigh 8\nmax 30\noom 4\noom_kill 3\noom_group_kill 1\n',
    [`${group}/memory.max`]: 'max\n',
    'sys/fs/cgroup/kube/pod7/memory.max': '68719476736\n',
    'sys/fs/cgroup/kube/memory.max': '274877906944\n',
  });
  expect(readOomCounters(root)).toEqual({ cgroupKills: 3, cgroupLimitBytes: 68719476736, hostKills: 12 });
});

it('reads version 2 inside a container that sees only its own group', () => {
  const root = rootWith({
    'proc/self/cgroup': '0::/docker/ab12\n',
    'proc/self/mountinfo': V2_MOUNT.replace(' / /sys', ' /docker/ab12 /sys'),
    'sys/fs/cgroup/memory.events': 'oom 1\noom_kill 1\n',
    'sys/fs/cgroup/memory.max': '8589934592\n',
  });
  expect(readOomCounters(root)).toEqual({ cgroupKills: 1, cgroupLimitBytes: 8589934592, hostKills: undefined });
});

it('reads version 1, also where its path is not mounted here', () => {
  const files = {
    'proc/self/cgroup': '7:cpu,cpuacct:/jobs/5\n4:memory:/jobs/5\n0::/\n',
    'proc/self/mountinfo': V1_MOUNT,
  };
  const own = rootWith({
    ...files,
    'sys/fs/cgroup/memory/jobs/5/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 2\n',
    'sys/fs/cgroup/memory/jobs/5/memory.limit_in_bytes': '34359738368\n',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '9223372036854771712\n',
  });
  expect(readOomCounters(own)).toMatchObject({ cgroupKills: 2, cgroupLimitBytes: 34359738368 });
  const hidden = rootWith({
    ...files,
    'sys/fs/cgroup/memory/memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 6\n',
    'sys/fs/cgroup/memory/memory.limit_in_bytes': '17179869184\n',
  });
  expect(readOomCounters(hidden)).toMatchObject({ cgroupKills: 6, cgroupLimitBytes: 17179869184 });
});

it('tells no limit from an unknown one', () => {
  const unlimited = rootWith({
    'proc/self/cgroup': '0::/\n',
    'proc/self/mountinfo': V2_MOUNT,
    'sys/fs/cgroup/memory.max': 'max\n',
  });
  expect(readOomCounters(unlimited).cgroupLimitBytes).toBeNull();
  expect(readOomCounters(rootWith({}))).toEqual({ cgroupKills: 0, cgroupLimitBytes: undefined, hostKills: undefined });
});

it('reads the memory of a process, and none of one that is gone', async () => {
  expect(await readRam(process.pid)).toBeGreaterThan(10 * 1024 ** 2);
  expect(await readRam(2 ** 22 + 1)).toBe(0);
});
