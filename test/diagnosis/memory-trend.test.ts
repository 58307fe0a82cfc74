import { describe, expect, it } from 'vitest';
import { classify, growthOf, type RunSample, slowdownOf } from '../../src/diagnosis/index.ts';
import { randomNumbers } from '../support/random-numbers.ts';
import { attempt, oom } from './texts.ts';

const MiB = 2 ** 20;
const GiB = 2 ** 30;

/** A run of `steps` steps, looked at every second; `vram` and `ram` of a step, `ms` each step takes. */
function run(
  steps: number,
  {
    vram,
    ram,
    ms = () => 1000,
    swap = () => 0,
  }: Partial<Record<'vram' | 'ram' | 'ms' | 'swap', (step: number) => number>>,
): RunSample[] {
  const samples: RunSample[] = [];
  let step = 1;
  let begunAt = 0;
  for (let atMs = 0; step <= steps; atMs += 1000) {
    while (step <= steps && begunAt + ms(step) <= atMs) begunAt += ms(step++);
    samples.push({ atMs, step, vramBytes: vram?.(step), ramBytes: ram?.(step), swapBytes: swap(step) });
  }
  return samples;
}

describe('memory that grows with the steps', () => {
  const leak = (step: number): number => 9 * GiB + step * 12 * MiB;

  it('is told by how much a step, and when it is used up', () => {
    const growth = growthOf(run(400, { vram: leak }), 'vramBytes', 24 * GiB)!;
    expect(growth.bytesPerStep / MiB).toBeCloseTo(12, 1);
    // 15 GiB at 12 MiB a step.
    expect(Math.abs(growth.fullAtStep! - 1280)).toBeLessThan(15);
    expect(growth).toMatchObject({ toStep: 401, lastBytes: leak(401) });
  });

  it.each<[string, (step: number) => number]>([
    ['in pieces of an allocator', (step) => 9 * GiB + Math.floor((step * 12) / 200) * 200 * MiB],
    ['under evaluations that take more for a while', (step) => leak(step) + (step % 50 < 4 ? 3 * GiB : 0)],
    ['a hundred steps to the gigabyte', (step) => 5 * GiB + step * 10 * MiB],
  ])('also %s', (_, vram) => {
    expect(growthOf(run(400, { vram }), 'vramBytes', 24 * GiB)).toBeDefined();
  });

  const random = randomNumbers(31);
  let longest = 0;
  it.each<[string, (step: number) => number]>([
    ['stays', () => 9 * GiB],
    ['rises once, at the first optimizer step', (step) => (step < 3 ? 4 * GiB : 12 * GiB)],
    ['rises once, late', (step) => (step < 330 ? 9 * GiB : 14 * GiB)],
    ['fills a cache and stays', (step) => 9 * GiB + 4 * GiB * (1 - Math.exp(-step / 60))],
    [
      'follows the longest row so far',
      () => {
        longest = Math.max(longest, random.next().value);
        return 9 * GiB + longest * 8 * GiB;
      },
    ],
    ['follows the length of each row', () => 9 * GiB + random.next().value * 6 * GiB],
    ['grows by a counter', (step) => 9 * GiB + step * 4096],
    ['falls', (step) => 14 * GiB - step * 10 * MiB],
  ])('is not told of memory that %s', (_, vram) => {
    expect(growthOf(run(400, { vram }), 'vramBytes', 24 * GiB)).toBeUndefined();
  });

  it('is not told of a run too short to tell, or without a driver', () => {
    expect(growthOf(run(12, { vram: leak }), 'vramBytes', 24 * GiB)).toBeUndefined();
    expect(growthOf(run(400, {}), 'vramBytes', 24 * GiB)).toBeUndefined();
  });

  it('makes an OOM of a step its end, and not one of loading or evaluating', () => {
    const vramGrowth = growthOf(run(400, { vram: leak }), 'vramBytes', 24 * GiB)!;
    const dead = attempt(oom(), { exitCode: 1 });
    expect(classify({ ...dead, vramGrowth })).toMatchObject({
      kind: 'vram_leak_growth',
      candidates: expect.arrayContaining(['vram_capacity']),
    });
    expect(classify(dead)).toMatchObject({ kind: 'vram_capacity' });
    const evaluating = attempt(
      `Traceback (most recent call last):\n  File "t.py", line 3, in evaluation_loop\n    step()\n${oom()}`,
      {
        exitCode: 1,
      },
    );
    expect(classify({ ...evaluating, vramGrowth })).toMatchObject({ kind: 'vram_eval_spike' });
  });
});

describe('steps that take far longer while memory is used up', () => {
  const slow = (step: number): number => (step < 120 ? 1000 : 14_000);

  it('are told of, with what is used up', () => {
    const spill = run(150, { ms: slow, vram: (step) => (step < 118 ? 7.1 : 7.9) * GiB });
    expect(slowdownOf(spill, 8 * GiB)).toMatchObject({ because: 'vram' });
    expect(slowdownOf(spill, 8 * GiB)!.stepMs / 14_000).toBeCloseTo(1, 1);
    const swapping = run(150, { ms: slow, ram: () => 20 * GiB, swap: (step) => (step < 118 ? 0 : 9 * GiB) });
    expect(slowdownOf(swapping, undefined)).toMatchObject({ because: 'swap' });
  });

  it.each<[string, Parameters<typeof run>[1]]>([
    ['with room on the card', { ms: slow, vram: () => 5 * GiB }],
    ['with a little in swap that nobody uses', { ms: slow, ram: () => 20 * GiB, swap: () => GiB / 2 }],
    ['not for long', { ms: (step) => (step === 80 ? 20_000 : 1000), vram: () => 7.9 * GiB }],
    ['twice as long', { ms: (step) => (step < 120 ? 1000 : 2000), vram: () => 7.9 * GiB }],
    ['from the first on', { ms: () => 14_000, vram: () => 7.9 * GiB }],
  ])('are no matter of memory %s', (_, shape) => {
    expect(slowdownOf(run(150, shape), 8 * GiB)).toBeUndefined();
  });

  it('are not a run that stands still', () => {
    const stands = run(120, { vram: () => 7.9 * GiB });
    const last = stands.at(-1)!;
    const still = Array.from({ length: 200 }, (_, at) => ({ ...last, atMs: last.atMs + at * 1000 }));
    expect(slowdownOf([...stands, ...still], 8 * GiB)).toBeUndefined();
  });
});
