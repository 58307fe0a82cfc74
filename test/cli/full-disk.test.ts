import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeSandbox, ROOT, type Sandbox } from '../support/snug-cli.ts';

const FULL = '/dev/full';

let box: Sandbox;
beforeEach(() => {
  box = makeSandbox();
});
afterEach(() => box.remove());

/** snug with one of its streams on a full disk. */
function withFull(stream: 'stdout' | 'stderr', args: readonly string[]) {
  const full = openSync(FULL, 'w');
  const stdio = stream === 'stdout' ? (['ignore', full, 'pipe'] as const) : (['ignore', 'pipe', full] as const);
  try {
    return spawnSync(process.execPath, [join(ROOT, 'bin', 'snug.js'), ...args], {
      cwd: box.folder,
      env: { ...box.env },
      stdio: [...stdio],
      encoding: 'utf8',
      timeout: 60_000,
    });
  } finally {
    closeSync(full);
  }
}

describe.skipIf(!existsSync(FULL))('output into a file on a full disk', () => {
  it.each(['stdout', 'stderr'] as const)('%s: the run goes on to its end', (stream) => {
    const lines =
      'for i in 1 2 3 4 5; do echo a line of the trainer; echo another >&2; done; echo done > finished; exit 9';
    const { status } = withFull(stream, ['run', '--', 'sh', '-c', lines]);
    expect([status, box.read('finished')]).toEqual([9, 'done\n']);
  });

  it('a check keeps its exit code and shows no stack trace', () => {
    box.write('snug.yaml', 'model: Qwen/Qwen2.5-0.5B\nper_device_train_batch_size: 1\nmax_length: 256\n');
    const { status, stderr } = withFull('stdout', ['check', '--gpu', '80GiB']);
    expect([status, stderr]).toEqual([0, expect.not.stringContaining('    at ')]);
  });
});
