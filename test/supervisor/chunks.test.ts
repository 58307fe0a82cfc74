import { closeSync, openSync, writeSync } from 'node:fs';
import { expect, it } from 'vitest';
import { classify, type Evidence } from '../../src/diagnosis/index.ts';
import { LONGEST, newText, traceback } from '../diagnosis/texts.ts';
import { createGate, lastWords, puppet } from './rig.ts';

const told = ({ lines, stepsSeen, exitCode }: Evidence) => ({
  lines: lines.map(({ text, line, rank, signature, phase }) => ({ text, line, rank, signature, phase })),
  stepsSeen,
  exitCode,
});

it.each(LONGEST)('a border between any two bytes changes nothing: %.60s', async (message) => {
  const log = ` 61%|██████▏   | 61/100 [00:09<00:05]\r[rank2]: ${traceback(['forward: return self.mlp(x)'], message).replaceAll('\n', '\n[rank2]: ')}\n`;
  const gate = createGate();
  const rig = puppet(
    [
      ['bytewise', 'err', log, gate.path],
      ['exit', 1],
    ],
    { fatalLineGraceMs: 60_000 },
  );
  // Opened for both, so that the puppet's opening does not wait for ours.
  const answers = openSync(gate.path, 'r+');
  const sizes = new Set<number>();
  rig.stderr.stream.on('data', (chunk: Buffer) => {
    sizes.add(chunk.length);
    writeSync(answers, '!');
  });
  const evidence = await rig.evidence();
  closeSync(answers);
  expect([...sizes]).toEqual([1]);
  expect(rig.stderr.bytes().toString()).toBe(log);
  const whole = await lastWords(log.slice(0, -1), 1).evidence();
  expect(told(evidence)).toEqual(told(whole));
  expect(classify(evidence)).toEqual({ ...classify(whole), evidence: classify(evidence)!.evidence });
});

const MESSAGE = `torch.OutOfMemoryError: ${newText()}`;
const rankLines = (rank: number, frames: readonly string[], exception: string): readonly string[] =>
  traceback(frames, exception)
    .split('\n')
    .map((line) => `[rank${rank}]: ${line}\n`);

it('two ranks whose lines alternate keep their own traceback and phase', async () => {
  const one = rankLines(0, ['_forward: return self.head(x)', 'forward: return F.linear(x, w)'], MESSAGE);
  const other = rankLines(1, ['evaluation_loop: logits = nested_concat(a, b)'], 'ValueError: shapes do not agree');
  const turns = one.map(() => [createGate(), createGate()] as const);
  const mine = one.flatMap((line, at) => [
    ...(at > 0 ? [['await', turns[at]![0].path] as const] : []),
    ['err', line] as const,
    ['open', turns[at]![1].path] as const,
  ]);
  const theirs = one.flatMap((_, at) => [
    ['await', turns[at]![1].path] as const,
    ...(other[at] === undefined ? [] : [['err', other[at]] as const]),
    ...(at + 1 < turns.length ? [['open', turns[at + 1]![0].path] as const] : []),
  ]);
  const rig = puppet([
    ['child', [...mine, ['exit', 1]], { session: true }],
    ['child', [...theirs, ['exit', 1]], { session: true }],
    ['childrenEnd'],
    ['exit', 1],
  ]);
  const evidence = await rig.evidence();
  const text = rig.stderr.bytes().toString();
  expect(
    text
      .split('\n')
      .slice(0, 4)
      .map((line) => line.slice(0, 7)),
  ).toEqual(['[rank0]', '[rank1]', '[rank0]', '[rank1]']);
  expect(classify(evidence)).toMatchObject({
    kind: 'vram_capacity',
    phase: 'forward',
    evidence: [{ rank: 0 }, { rank: 1 }],
  });
});

it('a word of another rank in the middle of a message does not hide it', async () => {
  const cut = MESSAGE.indexOf('GPU 1 has') + 4;
  const gate = createGate();
  const rig = puppet([
    ['passOn', 'SIGTERM'],
    ['child', [['err', `${MESSAGE.slice(0, cut)}`], ['open', gate.path], ['forever']], { session: true }],
    [
      'child',
      [
        ['await', gate.path],
        ['err', `n7:41:58 [1] NCCL INFO comm 0x55d0 rank 1\n${MESSAGE.slice(cut)}\n`],
        ['forever'],
      ],
      { session: true },
    ],
    ['childrenEnd'],
    ['exit', 1],
  ]);
  const evidence = await rig.evidence();
  expect(evidence.stoppedBecause).toBe('fatal-line');
  expect(classify(evidence)).toMatchObject({ kind: 'vram_capacity' });
});

it('two ranks that run out at the same time are one failure', async () => {
  const rig = puppet([
    ['passOn', 'SIGTERM'],
    ['child', [['err', `[rank0]: ${MESSAGE}\n`], ['forever']], { session: true }],
    ['child', [['out', `[rank1]: ${MESSAGE.replace('GPU 1', 'GPU 2')}\n`], ['forever']], { session: true }],
    ['childrenEnd'],
    ['exit', 1],
  ]);
  const evidence = await rig.evidence();
  expect(evidence.stoppedBecause).toBe('fatal-line');
  const failure = classify(evidence)!;
  expect(failure).toMatchObject({ kind: 'vram_capacity' });
  expect(failure.evidence.map(({ rank }) => rank).sort()).toEqual([0, 1]);
});
