import { expect, it } from 'vitest';
import { classify, createLineWatcher } from '../../src/diagnosis/index.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { attempt, LONGEST, traceback } from './texts.ts';

const logOf = (message: string): Buffer =>
  Buffer.from(
    `{'loss': 1.9}\n 61%|██████▏   | 61/100 [00:09<00:05]\r[rank2]: ${traceback(['forward: return self.mlp(x)'], message).replaceAll('\n', '\n[rank2]: ')}\n`,
  );

type Piece = readonly ['stdout' | 'stderr', Uint8Array];

function verdictOf(pieces: readonly Piece[]): unknown {
  const watcher = createLineWatcher();
  let hit: string | undefined;
  for (const [stream, bytes] of pieces) {
    const brought = watcher.push(stream, bytes)?.resource;
    hit ??= brought;
  }
  const last = watcher.end()?.resource;
  const { finished: _, ...watched } = watcher.evidence();
  return { hit: hit ?? last, failure: classify({ ...attempt('', { exitCode: 1 }), ...watched }) };
}

it.each(LONGEST)('a message is the same message cut at every byte: %.60s', (message) => {
  const log = logOf(message);
  const whole = verdictOf([['stderr', log]]);
  expect(whole).toMatchObject({ hit: expect.any(String) });
  for (let cut = 1; cut < log.length; cut++) {
    expect(
      verdictOf([
        ['stderr', log.subarray(0, cut)],
        ['stderr', log.subarray(cut)],
      ]),
      `cut at ${cut}`,
    ).toEqual(whole);
  }
});

it('is the same verdict for every way of cutting a log into chunks', () => {
  const random = randomNumbers(77);
  const draw = (below: number): number => Math.floor(random.next().value * below);
  for (const message of LONGEST) {
    const log = logOf(message);
    const whole = verdictOf([['stderr', log]]);
    for (let round = 0; round < 60; round++) {
      const pieces: Piece[] = [];
      const most = 1 + draw(200);
      for (let from = 0; from < log.length; ) {
        const to = Math.min(log.length, from + 1 + draw(most));
        pieces.push(['stderr', log.subarray(from, to)]);
        from = to;
      }
      expect(verdictOf(pieces), `round ${round}`).toEqual(whole);
    }
  }
});

it('takes arbitrary bytes without a fault, and never for an OOM', () => {
  const random = randomNumbers(4711);
  const draw = (below: number): number => Math.floor(random.next().value * below);
  // Words of the messages among the noise, so that it comes close.
  const words = [
    'CUDA',
    'out of memory',
    'Tried to allocate',
    'GiB',
    'torch',
    'Killed',
    '\r',
    '\n',
    '\x1b[31m',
    '|',
    '█',
    '[rank0]: ',
  ];
  for (let round = 0; round < 300; round++) {
    const parts = Array.from({ length: draw(40) }, () => {
      const word = words[draw(words.length)]!;
      return draw(3) === 0 ? Buffer.from(word) : Buffer.from(Array.from({ length: draw(30) }, () => draw(256)));
    });
    const bytes = Buffer.concat(parts);
    const watcher = createLineWatcher();
    const cut = draw(bytes.length + 1);
    expect(watcher.push('stdout', bytes.subarray(0, cut)), `round ${round}`).toBeUndefined();
    expect(watcher.push('stderr', bytes.subarray(cut)), `round ${round}`).toBeUndefined();
    expect(watcher.end()).toBeUndefined();
    const failure = classify({ ...attempt('', { exitCode: 1 }), ...watcher.evidence() });
    expect(failure?.resource, `round ${round}`).not.toBe('vram');
  }
});
