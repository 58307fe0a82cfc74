import { GiB } from '../../src/core/index.ts';
import { estimateMemory, leastDeviceBytes, memoryBudget } from '../../src/memory/index.ts';
import { describeModel, type ModelFacts } from '../../src/model/index.ts';
import {
  DEFAULT_POLICY,
  LEVERS,
  type Plan,
  type PlanRequest,
  permits,
  planRun,
  stepPredictor,
} from '../../src/planner/index.ts';
import { availableOptions } from '../../src/planner/levers/availability.ts';
import { priceMove } from '../../src/planner/levers/index.ts';
import { rememberEstimates } from '../../src/planner/plan-run.ts';
import { LEVER_CLASSES, type PlanValues } from '../../src/spec/index.ts';
import { surroundings, toyValues } from './toy.ts';

/** hidden, intermediate, layers, heads, key-value heads, vocabulary. */
type Shape = readonly [string, number, number, number, number, number, number];

/** Sizes people train, from a tenth of a billion to seventy billion parameters; shapes of our own. */
const SHAPES: readonly Shape[] = [
  ['llama', 640, 1792, 24, 10, 5, 50_000],
  ['qwen2', 896, 4864, 24, 14, 2, 151_000],
  ['llama', 2048, 5632, 22, 32, 4, 32_000],
  ['qwen3', 2048, 6144, 28, 16, 8, 151_000],
  ['gemma2', 2304, 9216, 26, 8, 4, 256_000],
  ['llama', 3072, 8192, 28, 24, 8, 128_000],
  ['mistral', 4096, 14_336, 32, 32, 8, 32_000],
  ['qwen2', 3584, 18_944, 28, 28, 4, 152_000],
  ['llama', 4096, 14_336, 32, 32, 8, 128_000],
  ['llama', 5120, 13_824, 40, 40, 40, 32_000],
  ['qwen3', 5120, 25_600, 64, 64, 8, 151_000],
  ['llama', 8192, 28_672, 80, 64, 8, 128_000],
];

export const MODELS: readonly { readonly name: string; readonly facts: ModelFacts }[] = SHAPES.map(
  ([type, hidden, intermediate, layers, heads, keyValueHeads, vocabulary]) => {
    const facts = describeModel({
      model_type: type,
      hidden_size: hidden,
      intermediate_size: intermediate,
      num_hidden_layers: layers,
      num_attention_heads: heads,
      num_key_value_heads: keyValueHeads,
      head_dim: type === 'gemma2' ? 256 : Math.max(64, hidden / heads),
      vocab_size: vocabulary,
      tie_word_embeddings: hidden < 2500,
      torch_dtype: 'bfloat16',
    });
    if (!facts.ok) throw new Error(JSON.stringify(facts.error));
    return { name: `${type} ${hidden} x ${layers}`, facts: facts.value };
  },
);

const lora = {
  r: 32,
  loraAlpha: 64,
  loraDropout: 0,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
} as const;

/** What people start from. */
export const STARTS: readonly { readonly name: string; readonly values: PlanValues }[] = [
  { name: 'full, fp32 under autocast', values: toyValues({ dtype: 'fp32', maxLength: 1024 }) },
  { name: 'full, bf16', values: toyValues({ mixedPrecision: 'no', maxLength: 2048, perDeviceTrainBatchSize: 4 }) },
  { name: 'LoRA on fp32', values: toyValues({ method: 'lora', lora, dtype: 'fp32', mixedPrecision: 'no' }) },
  {
    name: 'LoRA on bf16',
    values: toyValues({
      method: 'lora',
      lora,
      perDeviceTrainBatchSize: 16,
      gradientAccumulationSteps: 1,
      maxLength: 2048,
    }),
  },
  {
    name: 'LoRA, evaluated in large batches',
    values: toyValues({
      method: 'lora',
      lora,
      eval: true,
      perDeviceEvalBatchSize: 32,
      perDeviceTrainBatchSize: 2,
      maxLength: 4096,
    }),
  },
  {
    name: 'full, ZeRO-2 on four',
    values: toyValues({
      dtype: 'bf16',
      distributed: { nodes: 1, processesPerNode: 4, strategy: 'zero2', offload: [] },
      perDeviceTrainBatchSize: 8,
      gradientAccumulationSteps: 2,
    }),
  },
];

export const CARDS = [8, 12, 16, 24, 40, 48, 80] as const;

/** The levers that are also tried by enumeration in every cell: at most 2,000 plans. */
export const NAMED_LEVERS = [
  'micro-batch',
  'gradient-checkpointing',
  'loss',
  'allocator',
  'optimizer-8bit',
  'qlora',
  'frozen-base-16bit',
  'eval-batch',
] as const;

export interface Cell {
  readonly model: number;
  readonly start: number;
  readonly card: number;
}

export const cellName = ({ model, start, card }: Cell): string =>
  `${MODELS[model]!.name}, ${STARTS[start]!.name}, ${CARDS[card]} GiB`;

export function requestOf({ model, start, card }: Cell, levers: readonly string[] | undefined): PlanRequest {
  const { facts } = MODELS[model]!;
  const capacity = CARDS[card]! * GiB;
  const computeCapability = { major: 8, minor: 6 };
  const device = { computeCapability, capacityBytes: capacity };
  return {
    values: STARTS[start]!.values,
    budget: memoryBudget(capacity, 0, 0.05),
    policy: levers ? { ...DEFAULT_POLICY, allow: levers } : DEFAULT_POLICY,
    surroundings: surroundings({ computeCapability, hostRamBytes: 256 * GiB }),
    estimate: (values) => estimateMemory(values, facts, device),
    leastBytes: (values) => leastDeviceBytes(values, facts, device),
    stepSeconds: stepPredictor(facts, computeCapability),
  };
}

/** A plan with its place in the order: class, degree, speed in percent, changes, mildness. */
interface Ranked {
  readonly values: PlanValues;
  readonly rank: readonly number[];
}

/** Every combination of the levers' options, in registry order, nothing left out. */
function everyCombination({ values, policy, surroundings: around, stepSeconds }: PlanRequest): readonly Ranked[] {
  let plans: readonly (Ranked & { readonly factor: number })[] = [{ values, factor: 1, rank: [0, 0, 100, 0, 0] }];
  for (const lever of LEVERS.filter((one) => permits(policy, one))) {
    const altering = lever.class !== 'free' && lever.class !== 'exact';
    plans = plans.flatMap((plan) => {
      const options = availableOptions(lever, plan.values, around);
      if (typeof options === 'string') return [plan];
      const [harm = 0, degree = 0, , changes = 0, mildness = 0] = plan.rank;
      const pulled = options.map((set, index) => {
        const next = { ...plan.values, ...set };
        const factor = plan.factor * priceMove(lever, plan.values, next, stepSeconds).factor;
        const worse = lever.class === 'method' || lever.class === 'data' ? index + 1 : 1;
        return {
          values: next,
          factor,
          rank: [
            Math.max(harm, LEVER_CLASSES.indexOf(lever.class)),
            degree + (altering ? worse : 0),
            Math.round(factor * 100),
            changes + 1,
            mildness + index + 1,
          ],
        };
      });
      return [plan, ...pulled];
    });
  }
  return plans;
}

const byRank = (a: Ranked, b: Ranked): number =>
  a.rank.map((value, index) => value - b.rank[index]!).find((gap) => gap !== 0) ?? 0;

export interface Compared {
  readonly plan: Plan;
  /** Ranks; undefined: nothing fits. */
  readonly found: readonly number[] | undefined;
  readonly best: readonly number[] | undefined;
  readonly combinations: number;
}

/** The planner's answer beside the first plan that fits of all of them in order. */
export function compareWithEnumeration(request: PlanRequest): Compared {
  const estimateOf = rememberEstimates(request.estimate);
  const fits = (values: PlanValues): boolean => {
    const estimate = estimateOf(values);
    if (!estimate || estimate.vram.devicePeakBytes > request.budget.usableBytes) return false;
    return estimate.ram.neededBytes <= (request.surroundings.hostRamBytes ?? Number.POSITIVE_INFINITY);
  };
  const plan = planRun(request);
  const plans = [...everyCombination(request)].sort(byRank);
  const best = plans.find(({ values }) => fits(values));
  const same = (values: PlanValues): boolean => JSON.stringify(values) === JSON.stringify(plan.values);
  const found = plan.verdict === 'refuse' ? undefined : plans.find(({ values }) => same(values));
  return { plan, found: found?.rank, best: best?.rank, combinations: plans.length };
}
