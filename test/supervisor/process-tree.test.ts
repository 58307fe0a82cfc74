import { spawn } from 'node:child_process';
import { expect, it } from 'vitest';
import { createProcessTree, signalProcess } from '../../src/supervisor/process-tree.ts';

const BRANCHES = 40;
/** Each branch is a shell that starts a program, while others look. */
const GROWING = `for i in $(seq ${BRANCHES}); do (sleep 600 & wait) & done; echo grown; wait`;

it.skipIf(process.platform !== 'linux')('finds every process of a tree that grows while it is looked at', async () => {
  for (let round = 0; round < 3; round++) {
    const child = spawn('sh', ['-c', GROWING], {
      stdio: ['ignore', 'pipe', 'ignore'],
      env: { PATH: process.env.PATH },
    });
    const ended = new Promise((done) => child.once('exit', done));
    const tree = createProcessTree(child.pid!, false);
    let grown = false;
    child.stdout.once('data', () => {
      grown = true;
    });
    while (!grown) {
      tree.refresh();
      await new Promise((done) => setImmediate(done));
    }
    // The last branches may still be starting their program.
    const whole = 1 + 2 * BRANCHES;
    let looks = 0;
    while (tree.live().length < whole && looks++ < 5) await new Promise((done) => setTimeout(done, 200));
    expect(tree.live().length, `round ${round}`).toBe(whole);
    for (const stat of tree.live()) signalProcess(stat, 'SIGKILL');
    await ended;
    await expect.poll(() => tree.live().length, { timeout: 10_000 }).toBe(0);
  }
});
