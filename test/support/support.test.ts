import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { isRunning, readRecordedPids } from './processes.ts';
import { makeSandbox, type Sandbox } from './snug-cli.ts';

describe.skipIf(process.platform !== 'linux')('what the end-to-end tests rely on', () => {
  let sandbox: Sandbox | undefined;
  afterEach(() => sandbox?.remove());

  it('a fake nvidia-smi that answers the query of the supervisor, from a clean environment', async () => {
    sandbox = makeSandbox({ gpus: [{ name: 'NVIDIA A100-SXM4-40GB', total: 40960, used: 512, computeCap: '8.0' }] });
    const query = '--query-gpu=index,uuid,name,memory.total,memory.used,memory.free,compute_cap';
    const answered = await sandbox.startProgram(['sh', '-c', `nvidia-smi ${query} --format=csv,noheader,nounits`])
      .ended;
    expect(answered).toMatchObject({ exitCode: 0, stderr: '' });
    expect(answered.stdout).toBe(
      '0, GPU-00000000-0000-4000-8000-000000000000, NVIDIA A100-SXM4-40GB, 40960, 512, 40448, 8.0\n',
    );
    expect((await sandbox.startProgram(['sh', '-c', 'nvidia-smi --query-gpu=memory.banana']).ended).exitCode).toBe(2);
    sandbox.remove();

    sandbox = makeSandbox();
    const unreachable = await sandbox.startProgram(['sh', '-c', 'nvidia-smi']).ended;
    expect(unreachable.exitCode).toBe(9);
    expect(unreachable.stdout).toContain("couldn't communicate with the NVIDIA driver");
  });

  it('finds a process that left its session and its parent, and tells a pid that came back into use', async () => {
    sandbox = makeSandbox();
    const { ended } = sandbox.startProgram(['sh', '-c', 'setsid sleep 60 >/dev/null 2>&1 & exit 0']);
    await ended;
    await expect.poll(() => sandbox!.leftProcesses().length).toBe(1);
    const [left] = sandbox.leftProcesses();
    expect(isRunning(left!)).toBe(true);
    expect(isRunning({ pid: left!.pid, started: '1' })).toBe(false);
    sandbox.remove();
    await expect.poll(() => isRunning(left!)).toBe(false);
  });

  it('a zombie counts as ended, and recorded pids read back', async () => {
    sandbox = makeSandbox();
    // The shell becomes a sleep that never asks how its child ended.
    const parent = sandbox.startProgram(['sh', '-c', 'sleep 1 & echo $!; exec sleep 60']);
    await parent.seen(/^\d+\n/);
    const child = sandbox.leftProcesses().find(({ pid }) => pid !== parent.pid)!;
    expect(isRunning(child)).toBe(true);
    await expect.poll(() => isRunning(child)).toBe(false);
    expect(readFileSync(`/proc/${child.pid}/stat`, 'utf8')).toContain(') Z ');
    parent.signal('SIGKILL');
    expect((await parent.ended).signal).toBe('SIGKILL');
    writeFileSync(join(sandbox.folder, 'pids'), '12 345\n67 89\n');
    expect(readRecordedPids(join(sandbox.folder, 'pids'))).toEqual([
      { pid: 12, started: '345' },
      { pid: 67, started: '89' },
    ]);
  });
});
