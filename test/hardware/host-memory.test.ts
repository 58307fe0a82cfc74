import { describe, expect, it } from 'vitest';
import { GiB, KiB } from '../../src/core/index.ts';
import { readCgroupOomKills, readHostMemory, readMemoryCgroups } from '../../src/hardware/index.ts';
import { fakePorts } from '../support/fake-ports.ts';

const kib = (gib: number) => (gib * GiB) / KiB;
const meminfo = (total: number, available: number) =>
  `MemTotal:       ${kib(total)} kB\nMemFree:        ${kib(1)} kB\nMemAvailable:   ${kib(available)} kB\nCached:  ${kib(3)} kB\nSwapTotal:      ${kib(8)} kB\nSwapFree:        ${kib(5)} kB\n`;
const V2_MOUNT = '31 24 0:27 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n';
const V1_MOUNT = '40 33 0:36 / /sys/fs/cgroup/memory rw,nosuid - cgroup cgroup rw,memory\n';
const OTHER_MOUNTS =
  '21 1 259:2 / / rw - ext4 /dev/root rw\n39 33 0:35 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n';

/** Files of cgroup folders: `{ '/sys/…/a': { 'memory.max': 5 } }`. */
function cgroupFiles(folders: Record<string, Record<string, number | string>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(folders).flatMap(([folder, files]) =>
      Object.entries(files).map(([name, value]) => [`${folder}/${name}`, `${value}\n`]),
    ),
  );
}

function linux(options: {
  memory?: [number, number];
  cgroup?: string;
  mountinfo?: string;
  folders?: Record<string, Record<string, number | string>>;
}) {
  const { memory = [128, 96], cgroup, mountinfo, folders = {} } = options;
  return fakePorts({
    files: {
      '/proc/meminfo': meminfo(...memory),
      ...(cgroup !== undefined && { '/proc/self/cgroup': cgroup }),
      ...(mountinfo !== undefined && { '/proc/self/mountinfo': OTHER_MOUNTS + mountinfo }),
      ...cgroupFiles(folders),
    },
  });
}

/** `available GiB by what`. */
async function room(ports: ReturnType<typeof fakePorts>): Promise<string> {
  const host = await readHostMemory(ports);
  return host ? `${host.availableBytes / GiB} by ${host.limitedBy}` : 'unknown';
}

describe('no cgroup', () => {
  it('reads total, available and swap', async () => {
    expect(await readHostMemory(linux({}))).toEqual({
      totalBytes: 128 * GiB,
      availableBytes: 96 * GiB,
      limitedBy: 'MemAvailable',
      swapTotalBytes: 8 * GiB,
      swapFreeBytes: 5 * GiB,
    });
  });

  it('stands in for MemAvailable where the kernel is too old to have it', async () => {
    const text = meminfo(64, 0).replace(/MemAvailable.*\n/, '');
    expect(await room(fakePorts({ files: { '/proc/meminfo': text } }))).toBe('4 by MemAvailable');
  });

  it('is undefined where nothing can be read', async () => {
    expect(await readHostMemory(fakePorts())).toBeUndefined();
    expect(await readHostMemory(fakePorts({ files: { '/proc/meminfo': 'nonsense' } }))).toBeUndefined();
  });

  it('asks sysctl on macOS', async () => {
    const answer = (file: string, args: readonly string[]) =>
      file === 'sysctl' && args.join(' ') === '-n hw.memsize' ? { stdout: `${36 * GiB}\n` } : undefined;
    expect(await room(fakePorts({ platform: 'darwin', programs: answer }))).toBe('36 by hw.memsize');
    expect(await room(fakePorts({ platform: 'darwin' }))).toBe('unknown');
  });
});

describe('a Slurm job', () => {
  const inJob = (environment: Record<string, string>) =>
    room(fakePorts({ environment, files: { '/proc/meminfo': meminfo(128, 96) } }));

  it.each<[Record<string, string>, string]>([
    [{ SLURM_MEM_PER_NODE: '32768' }, '32 by SLURM_MEM_PER_NODE'],
    [{ SLURM_MEM_PER_CPU: '2048', SLURM_CPUS_ON_NODE: '12' }, '24 by SLURM_MEM_PER_CPU'],
    [{ SLURM_MEM_PER_NODE: '0' }, '96 by MemAvailable'],
    [{ SLURM_MEM_PER_CPU: '2048' }, '96 by MemAvailable'],
    [{ SLURM_MEM_PER_NODE: '512000' }, '96 by MemAvailable'],
    [{ SLURM_MEM_PER_NODE: '8G' }, '96 by MemAvailable'],
  ])('%j', async (environment, expected) => expect(await inJob(environment)).toBe(expected));
});

describe('cgroup v2', () => {
  const root = '/sys/fs/cgroup';
  const nested = {
    [`${root}/pods`]: {
      'memory.max': 40 * GiB,
      'memory.current': 30 * GiB,
      'memory.stat': `anon 5\ninactive_file ${6 * GiB}\n`,
    },
    [`${root}/pods/job`]: { 'memory.max': 'max', 'memory.current': 9 * GiB },
    [`${root}/pods/job/task`]: {
      'memory.max': 20 * GiB,
      'memory.current': 2 * GiB,
      'memory.stat': `inactive_file ${GiB}`,
    },
  };
  const ports = linux({ cgroup: '0::/pods/job/task\n', mountinfo: V2_MOUNT, folders: nested });

  it('takes the level that leaves least, page cache aside', async () => {
    // task: 20 − (2 − 1) = 19, pods: 40 − (30 − 6) = 16
    expect(await room(ports)).toBe(`16 by ${root}/pods`);
    expect(readMemoryCgroups(ports).map(({ folder, limitBytes }) => [folder, limitBytes])).toEqual([
      [`${root}/pods/job/task`, 20 * GiB],
      [`${root}/pods/job`, undefined],
      [`${root}/pods`, 40 * GiB],
      [root, undefined],
    ]);
  });

  it('leaves MemAvailable alone where it is the least', async () => {
    const tight = linux({ memory: [128, 11], cgroup: '0::/pods/job/task\n', mountinfo: V2_MOUNT, folders: nested });
    expect(await room(tight)).toBe('11 by MemAvailable');
  });

  it('counts memory.high, above which a process crawls', async () => {
    const folders = { [`${root}/user`]: { 'memory.max': 'max', 'memory.high': 10 * GiB, 'memory.current': 4 * GiB } };
    expect(await room(linux({ cgroup: '0::/user\n', mountinfo: V2_MOUNT, folders }))).toBe(`6 by ${root}/user`);
  });

  it('leaves nothing rather than less than nothing', async () => {
    const folders = { [`${root}/a`]: { 'memory.max': 2 * GiB, 'memory.current': 3 * GiB } };
    expect(await room(linux({ cgroup: '0::/a\n', mountinfo: V2_MOUNT, folders }))).toBe(`0 by ${root}/a`);
  });

  it('in a container with a namespace of its own', async () => {
    const folders = { [root]: { 'memory.max': 16 * GiB, 'memory.current': 4 * GiB } };
    expect(await room(linux({ cgroup: '0::/\n', mountinfo: V2_MOUNT, folders }))).toBe(`12 by ${root}`);
  });

  it('in a container that sees the path of the host, with only its own sub-tree mounted', async () => {
    const mountinfo = `31 24 0:27 /kube/pod\\0407 /sys/fs/cgroup ro - cgroup2 cgroup rw\n`;
    const folders = {
      [root]: { 'memory.max': 16 * GiB, 'memory.current': GiB },
      [`${root}/inner`]: { 'memory.max': 8 * GiB, 'memory.current': GiB },
    };
    const inside = linux({ cgroup: '0::/kube/pod 7/inner\n', mountinfo, folders });
    expect(readMemoryCgroups(inside).map(({ folder }) => folder)).toEqual([`${root}/inner`, root]);
    expect(await room(inside)).toBe(`7 by ${root}/inner`);
  });

  it('where the process lies outside what the container can see', async () => {
    const folders = { [root]: { 'memory.max': 6 * GiB, 'memory.current': GiB } };
    expect(await room(linux({ cgroup: '0::/../other/child\n', mountinfo: V2_MOUNT, folders }))).toBe(`5 by ${root}`);
  });
});

describe('cgroup v1', () => {
  const point = '/sys/fs/cgroup/memory';
  const NONE = '9223372036854771712';

  it('reads the memory hierarchy, with "no limit" as a huge number', async () => {
    const folders = {
      [point]: { 'memory.limit_in_bytes': NONE, 'memory.usage_in_bytes': 90 * GiB },
      [`${point}/slurm`]: { 'memory.limit_in_bytes': NONE, 'memory.usage_in_bytes': 50 * GiB },
      [`${point}/slurm/job_9`]: {
        'memory.limit_in_bytes': 32 * GiB,
        'memory.usage_in_bytes': 12 * GiB,
        'memory.stat': `inactive_file 77\ntotal_inactive_file ${2 * GiB}\nhierarchical_memory_limit ${32 * GiB}\n`,
      },
    };
    const cgroup = '9:cpu,cpuacct:/elsewhere\n4:memory:/slurm/job_9\n1:name=systemd:/init\n';
    expect(await room(linux({ cgroup, mountinfo: V1_MOUNT, folders }))).toBe(`22 by ${point}/slurm/job_9`);
  });

  it('in a container: the host path of the process, and a parent limit it cannot see', async () => {
    const mountinfo = '40 33 0:36 /docker/f00d /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n';
    const folders = {
      [point]: {
        'memory.limit_in_bytes': NONE,
        'memory.usage_in_bytes': 3 * GiB,
        'memory.stat': `cache 5\nhierarchical_memory_limit ${10 * GiB}\ntotal_inactive_file 0\n`,
      },
    };
    expect(await room(linux({ cgroup: '6:memory:/docker/f00d\n', mountinfo, folders }))).toBe(`7 by ${point}`);
  });

  it('hybrid: memory in v1 though v2 is mounted too', async () => {
    const mountinfo = `${V1_MOUNT}41 33 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n`;
    const folders = {
      [`${point}/box`]: { 'memory.limit_in_bytes': 9 * GiB, 'memory.usage_in_bytes': GiB },
      '/sys/fs/cgroup/unified/box': { 'memory.max': GiB, 'memory.current': 0 },
    };
    const hybrid = linux({ cgroup: '5:memory:/box\n0::/box\n', mountinfo, folders });
    expect(await room(hybrid)).toBe(`8 by ${point}/box`);
  });

  it('hybrid the other way: v1 for others, memory in v2', async () => {
    const mountinfo = '41 33 0:37 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n';
    const folders = { '/sys/fs/cgroup/unified/box': { 'memory.max': 4 * GiB, 'memory.current': GiB } };
    const hybrid = linux({ cgroup: '5:pids:/box\n0::/box\n', mountinfo, folders });
    expect(await room(hybrid)).toBe('3 by /sys/fs/cgroup/unified/box');
  });
});

describe('kills by the kernel', () => {
  it('sums the counters of v2 up the chain', () => {
    const folders = {
      '/sys/fs/cgroup/a': { 'memory.events': 'low 0\nhigh 3\nmax 12\noom 4\noom_kill 3\noom_group_kill 9' },
      '/sys/fs/cgroup/a/b': { 'memory.events': 'oom 1\noom_kill 2' },
    };
    expect(readCgroupOomKills(linux({ cgroup: '0::/a/b\n', mountinfo: V2_MOUNT, folders }))).toBe(5);
  });

  it('reads the counter of v1', () => {
    const folders = {
      '/sys/fs/cgroup/memory/j': { 'memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 6' },
    };
    expect(readCgroupOomKills(linux({ cgroup: '3:memory:/j\n', mountinfo: V1_MOUNT, folders }))).toBe(6);
  });

  it('is 0 where there is no counter', () => {
    expect(readCgroupOomKills(linux({}))).toBe(0);
    expect(readCgroupOomKills(linux({ cgroup: '0::/a\n', mountinfo: V2_MOUNT }))).toBe(0);
  });
});
