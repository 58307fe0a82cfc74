import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';
import { makeMemoryCgroup } from '../support/cgroup.ts';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

const SCRIPT = join(ROOT, 'test', 'fixtures', 'e2e', 'hungry.py');
const probe = process.platform === 'linux' ? makeMemoryCgroup(`snug-probe-${process.pid}`, 2 ** 28) : undefined;
probe?.remove();

describe.skipIf(process.platform !== 'linux')(
  'a trainer that runs out of host RAM',
  { timeout: TRAINER_TIMEOUT_MS },
  () => {
    let python: string;
    let sandbox: Sandbox;
    beforeAll(async () => {
      python = await ensurePythonEnv();
      await ensureBuilt();
    }, SETUP_TIMEOUT_MS);
    beforeEach(() => {
      // A card that is nearly full must not draw the blame.
      sandbox = makeSandbox({ python, gpus: [{ name: 'NVIDIA GeForce RTX 3090', total: 24576, used: 23100 }] });
    });
    afterEach(() => sandbox.remove());

    /** The verdict, not what the preflight says of the card before: host RAM by name, and no advice that is for VRAM. */
    const expectVerdict = (stderr: string, kind: string) => {
      const { attempts } = sandbox.onlyRun();
      expect(attempts).toHaveLength(1);
      expect(attempts[0]!.outcome).toMatchObject({ failure: { resource: 'host_ram', kind } });
      // Lines are wrapped to the terminal.
      const verdict = stderr.slice(stderr.indexOf('attempt 1 failed')).replaceAll(/\nsnug: {3,}/g, ' ');
      expect(verdict).toMatch(/exit code 14, snug's own: ended for want of host RAM/);
      expect(verdict).toMatch(/host RAM ran out: .*available before/);
      expect(verdict).toMatch(/would help: a machine, container or job with more RAM/);
      expect(verdict).not.toMatch(
        /(bigger|larger) (GPU|card)|more VRAM|per_device_train_batch_size|gradient_checkpointing/i,
      );
    };

    it('under an address space limit: exit code 14, named as host RAM, not retried', async () => {
      const run = await sandbox.run(['run', '--', 'python', SCRIPT]);
      expect(run.stderr).toMatch(/DefaultCPUAllocator: can't allocate memory/);
      expect(run.exitCode).toBe(14);
      expectVerdict(run.stderr, 'host_ram');
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
          expectVerdict(run.stderr, 'cgroup');
        } finally {
          cgroup.remove();
        }
      },
    );
  },
);
