import { expect, it } from 'vitest';
import { createLineWatcher } from '../../src/diagnosis/index.ts';
import { createFloodWatch } from '../../src/supervisor/flood-watch.ts';

const OOM =
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.50 GiB. GPU 0 has a total capacity of 39.39 GiB of which 4.11 GiB is free.';
const plain = Buffer.from("{'grad': 0.71, 'rate': 0.0002}\n".repeat(2000));
const alarming = Buffer.from('W: an Error that is caught, 17 times\n'.repeat(1500));

const linesOf = (bytes: Buffer): number => bytes.toString('latin1').split('\n').length - 1;

/** A watch that has no time to read everything. */
const floodOf = () => {
  const watcher = createLineWatcher();
  return { watcher, flood: createFloodWatch(watcher, { share: 0, atOnceMs: 0 }) };
};

it.each([
  ['plain lines', plain],
  ['lines that look telling', alarming],
])('finds an OOM inside a flood of %s, whatever the chunk border, with its phase and its line', (_, noise) => {
  for (const cut of [1, 77, 260]) {
    const { watcher, flood } = floodOf();
    for (let round = 0; round < 30; round++) {
      flood.push('stderr', noise);
    }
    const message = Buffer.from(
      `Traceback (most recent call last):\n  File "m.py", line 4, in backward\n    loss.backward()\n${OOM}\n`,
    );
    const hits = [
      flood.push('stderr', Buffer.concat([noise, message.subarray(0, cut)])),
      flood.push('stderr', Buffer.concat([message.subarray(cut), noise])),
    ];
    flood.end();
    watcher.end();
    expect(hits.find(Boolean), `cut at ${cut}`).toMatchObject({ resource: 'vram' });
    const found = watcher.evidence().lines.find(({ text }) => text.includes('Tried to allocate'));
    expect(found).toMatchObject({ phase: 'backward', line: 31 * linesOf(noise) + 4 });
  }
});

it('reads everything while there is time', () => {
  const watcher = createLineWatcher();
  const flood = createFloodWatch(watcher, { share: 1000, atOnceMs: 60_000 });
  for (let step = 1; step <= 30; step++)
    flood.push('stdout', Buffer.from(`{'loss': ${(9 / step).toFixed(5)}}\n${plain}`));
  expect(watcher.evidence().stepsSeen).toBe(30);
});
