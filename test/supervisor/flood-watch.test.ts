import { expect, it } from 'vitest';
import { createLineWatcher, type LineWatcher } from '../../src/diagnosis/index.ts';
import { createFloodWatch } from '../../src/supervisor/flood-watch.ts';

const OOM =
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.50 GiB. GPU 0 has a total capacity of 39.39 GiB of which 4.11 GiB is free.';
const plain = Buffer.from("{'grad': 0.71, 'rate': 0.0002}\n".repeat(2000));
const alarming = Buffer.from('W: an Error that is caught, 17 times\n'.repeat(1500));

const linesOf = (bytes: Buffer): number => bytes.toString('latin1').split('\n').length - 1;

/** A watch that has no time to read everything. */
const floodOf = () => {
  const watcher = createLineWatcher();
  let bytes = 0;
  const push: LineWatcher['push'] = (stream, chunk) => {
    bytes += chunk.length;
    return watcher.push(stream, chunk);
  };
  const flood = createFloodWatch({ ...watcher, push }, { share: 0, atOnceMs: 0 });
  return { watcher, flood, bytesRead: () => bytes };
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

it.each([
  ['refreshes of a bar', Buffer.from(' 41%|####      | busy\r'.repeat(2500))],
  ['one line without an end', Buffer.alloc(60_000, 'QUJD')],
])('keeps no more of a flood of %s than it needs, and finds the OOM behind it', (_, noise) => {
  const { watcher, flood, bytesRead } = floodOf();
  flood.push('stdout', Buffer.from('ready\n'));
  for (let round = 0; round < 400; round++) flood.push('stderr', noise);
  flood.push('stderr', Buffer.from(`\n${OOM}\n`));
  flood.end();
  watcher.end();
  expect(watcher.fatal()).toMatchObject({ resource: 'vram', line: { line: 3 } });
  expect(bytesRead()).toBeLessThan(6 * noise.length);
});

it('counts the lines of a flood as the log does, also where they end in a refresh of a bar', () => {
  const { watcher, flood } = floodOf();
  flood.push('stderr', Buffer.from('ready\n'));
  const mixed = Buffer.from(`epoch ends\n${' 3%|#    |\r'.repeat(4000)}`);
  for (let round = 0; round < 20; round++) flood.push('stderr', mixed);
  flood.push('stderr', Buffer.from(`\n${OOM}\n`));
  flood.end();
  watcher.end();
  // The line of the last bar, and the ones before.
  expect(watcher.fatal()).toMatchObject({ line: { line: 23 } });
});

it('counts the lines of both streams together, and takes no traceback of the one apart for a flood of the other', () => {
  const { watcher, flood } = floodOf();
  const traceback = [
    'Traceback (most recent call last):',
    '  File "m.py", line 4, in backward',
    '    loss.backward()',
    OOM,
  ];
  flood.push('stderr', Buffer.from('ready\n'));
  for (const line of traceback) {
    for (let round = 0; round < 10; round++) flood.push('stdout', plain);
    flood.push('stderr', Buffer.from(`${line}\n`));
  }
  flood.end();
  watcher.end();
  const found = watcher.evidence().lines.find(({ text }) => text.includes('Tried to allocate'));
  expect(found?.phase).toBe('backward');
  // What is held back of the flood is counted when it is let go of.
  const before = 1 + 40 * linesOf(plain) + 4;
  expect(found!.line).toBeLessThanOrEqual(before);
  expect(found!.line).toBeGreaterThan(before - 2 * linesOf(plain));
});
