import { describe, expect, it, vi } from 'vitest';
import { estimateMemory, explainMemory, leastDeviceBytes } from '../../src/memory/index.ts';
import { isSame, Latest } from '../../src/memory/latest.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan, SMALL_LLAMA } from './plans.ts';

const NF4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: true } as const;
const OLD = { torch: '2.4', transformers: '4.45', peft: '0.13', trl: '0.11' };
const TWO = { nodes: 1, processesPerNode: 2, strategy: 'fsdp2', offload: [] } as const;

/** Neighbours differ in one setting that something remembered depends on, or leave something behind in the parameters. */
const CHANGES: readonly Partial<PlanValues>[] = [
  {},
  { perDeviceTrainBatchSize: 7 },
  { dtype: 'fp32' },
  { dtype: 'fp32', mixedPrecision: 'bf16' },
  { embeddingsInFp32: true },
  { lossImpl: 'chunked' },
  { lossImpl: 'chunked', maxLength: 1024 },
  { lossImpl: 'chunked', eval: true },
  { lossImpl: 'chunked_logits' },
  { gradientAccumulationSteps: 4 },
  { gradientCheckpointing: CHECKPOINTING },
  { gradientCheckpointing: { ...CHECKPOINTING, useReentrant: true } },
  { optim: 'adamw_torch' },
  { optim: 'galore_adamw', optimArgs: 'rank=16' },
  { optim: 'galore_adamw', optimArgs: 'rank=64' },
  { optim: 'galore_adamw', optimTargetModules: ['mlp'] },
  { optimizerInBackward: true },
  { distributed: TWO },
  { distributed: TWO, mixedPrecision: 'bf16' },
  { objective: 'reward' },
  { objective: 'classification' },
  { objective: 'dpo' },
  { method: 'lora', lora: LORA },
  { method: 'lora', lora: { ...LORA, r: 48 } },
  { method: 'lora', lora: { ...LORA, targetModules: ['q_proj', 'down_proj'] } },
  { method: 'lora', lora: { ...LORA, modulesToSave: ['embed_tokens'] } },
  { method: 'dora', lora: LORA },
  { method: 'qlora', lora: LORA, quantization: NF4 },
  { method: 'qlora', lora: LORA, quantization: { ...NF4, doubleQuant: false } },
  { method: 'qlora', lora: LORA, quantization: NF4, ownModules: 'litgpt' },
  { versions: OLD },
  { method: 'lora', lora: LORA, versions: OLD },
  { method: 'prompt_tuning', promptTuning: { numVirtualTokens: 9, projectionHiddenSize: undefined } },
  { method: 'prompt_tuning', promptTuning: { numVirtualTokens: 30, projectionHiddenSize: undefined } },
];
const PLANS = CHANGES.map((changes) => plan(changes));
/** A tied head: the table's gradient waits for two uses. */
const CONFIG = { ...SMALL_LLAMA, tie_word_embeddings: true };

/** Everything that is said of a plan. */
type Answers = (values: PlanValues) => unknown;
const answersOf = (memory: typeof import('../../src/memory/index.ts'), facts: ReturnType<typeof factsOf>): Answers => {
  const { estimateMemory: estimate, explainMemory: explain, leastDeviceBytes: least } = memory;
  return (values) => [estimate(values, facts), least(values, facts), explain(values, facts)];
};

/** The answer of modules that have seen nothing before. */
async function freshly(values: PlanValues): Promise<unknown> {
  vi.resetModules();
  const memory = await import('../../src/memory/index.ts');
  const { describeModel } = await import('../../src/model/index.ts');
  const facts = describeModel(CONFIG);
  if (!facts.ok) throw new Error(facts.error[0]!.message);
  return answersOf(memory, facts.value)(values);
}

describe('what was estimated before', () => {
  const facts = factsOf(CONFIG);
  const warm = answersOf({ estimateMemory, explainMemory, leastDeviceBytes } as never, facts);

  it('all plans can be estimated, and are not all alike', () => {
    const peaks = PLANS.map((values) => {
      const estimate = estimateMemory(values, facts);
      if (!estimate.ok) throw new Error(estimate.error[0]!.message);
      return estimate.value.vram.devicePeakBytes;
    });
    expect(new Set(peaks).size).toBeGreaterThan(PLANS.length * 0.75);
  });

  it('changes nothing: forwards, backwards and again, the answers are those of a model nobody has asked about', () => {
    const unknown = PLANS.map((values) =>
      answersOf({ estimateMemory, explainMemory, leastDeviceBytes } as never, factsOf(CONFIG))(values),
    );
    expect(PLANS.map(warm)).toEqual(unknown);
    expect(PLANS.toReversed().map(warm).toReversed()).toEqual(unknown);
    expect(PLANS.flatMap((values) => [warm(values), warm(structuredClone(values))])).toEqual(
      unknown.flatMap((answer) => [answer, answer]),
    );
  });

  it('changes nothing: a process that has estimated a hundred plans answers as a fresh one', async () => {
    for (const values of PLANS) warm(values);
    for (const values of PLANS.filter((_, index) => index % 3 === 0))
      expect(warm(values)).toEqual(await freshly(values));
  });
});

describe('the latest answers', () => {
  it('one question has one answer, a different one its own', () => {
    let made = 0;
    const latest = new Latest<{ readonly r: number; readonly names: readonly string[] }, number>();
    const ask = (r: number, ...names: string[]) => latest.get({ r, names }, () => (made += 1));
    expect([ask(8, 'q'), ask(8, 'q'), ask(8, 'q', 'v'), ask(16, 'q'), ask(8, 'q')]).toEqual([1, 1, 2, 3, 1]);
  });

  it('old ones are forgotten', () => {
    const latest = new Latest<number, object>();
    const first = latest.get(0, () => ({}));
    expect(latest.get(0, () => ({}))).toBe(first);
    for (let question = 1; question < 100; question += 1) latest.get(question, () => ({}));
    expect(latest.get(0, () => ({}))).not.toBe(first);
  });

  it.each([
    [{ a: 1 }, { a: 1 }, true],
    [{ a: 1, b: 2 }, { a: 1 }, false],
    [{ a: 1 }, { a: 1, b: undefined }, false],
    [{ a: undefined }, { b: undefined }, false],
    [['q', 'v'], ['q', 'v'], true],
    [['q'], ['q', 'v'], false],
    [['q'], { 0: 'q' }, false],
    [null, {}, false],
    [null, null, true],
    ['1', 1, false],
    [{ lora: { r: 8 } }, { lora: { r: 9 } }, false],
  ])('%j and %j: same is %s', (a, b, same) => {
    expect([isSame(a, b), isSame(b, a)]).toEqual([same, same]);
  });
});
