import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { makeMemoryCgroup } from '../support/cgroup.ts';
import { ensureBuilt, makeSandbox, ROOT, type Sandbox } from '../support/snug-cli.ts';

const SCRIPT = join(ROOT, 'test', 'fixtures', 'e2e', 'hungry.py');
const probe = process.platform === 'linux' ? makeMemoryCgroup(`snug-probe-${process.pid}`, 2 ** 28) : undefined;
probe?.remove();

describe.skipIf(process.platform !== 'linux')('a trainer that runs out of host RAM', () => {
  let python: string;
  let sandbox: Sandbox;
  beforeAll(async () => {
    python = await ensurePythonEnv();
    await ensureBuilt();
  });
  beforeEach(() => {
    // A card that is nearly full must not draw the blame.
    sandbox = makeSandbox({ python, gpus: [{ name: 'NVIDIA GeForce RTX 3090', total: 24576, used: 23100 }] });
  });
  afterEach(() => sandbox.remove());

  const expectHostRam = () => {
    const { attempts } = sandbox.onlyRun();
    expect(attempts).toHaveLength(1);
    return expect(attempts[0]!.outcome);
  };

  it('under an address space limit: exit code 14, named as host RAM, not retried', async () => {
    const run = await sandbox.run(['run', '--', 'python', SCRIPT]);
    expect(run.stderr).toMatch(/DefaultCPUAllocator: can't allocate memory/);
    expect(run.exitCode).toBe(14);
    expectHostRam().toMatchObject({ failure: { resource: 'host_ram' } });
    expect(run.stderr).toMatch(/host RAM/i);
    expect(run.stderr).not.toMatch(/bigger GPU|larger GPU|more VRAM|per_device_train_batch_size/i);
  });

  it.skipIf(!probe)(
    'killed by the kernel inside a cgroup, without a word: exit code 14, named as host RAM',
    async () => {
      const cgroup = makeMemoryCgroup(`snug-e2e-${process.pid}`, 400 * 2 ** 20)!;
      try {
        const enter = `echo $$ > ${cgroup.procsPath} && exec "$@"`;
        const snug = [process.execPath, join(ROOT, 'bin', 'snug.js'), 'run', '--', 'python3', SCRIPT, '--grow'];
        const run = await sandbox.startProgram(['sh', '-c', enter, 'sh', ...snug]).ended;
        expect(run.exitCode).toBe(14);
        expectHostRam().toMatchObject({ failure: { resource: 'host_ram', kind: 'cgroup' } });
        expect(run.stderr).toMatch(/host RAM|cgroup/i);
        expect(run.stderr).not.toMatch(/bigger GPU|larger GPU|more VRAM|per_device_train_batch_size/i);
      } finally {
        cgroup.remove();
      }
    },
  );
});
