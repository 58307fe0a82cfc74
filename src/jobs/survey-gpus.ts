import type { Diagnostic, Ports } from '../core/index.ts';
import { GPU_CATALOGUE, type Gpu, resolveGpuName, typedGpuName } from '../hardware/index.ts';
import {
  estimateMemory,
  leastDeviceBytes,
  type MemoryBudget,
  type MemoryEstimate,
  memoryBudget,
} from '../memory/index.ts';
import { type Plan, planRun, stepPredictor } from '../planner/index.ts';
import type { GpuFit, GpuSurvey } from '../report/index.ts';
import { globalBatchSize, type PlanValues, type Strategy } from '../spec/index.ts';
import { type Preflight, type PreflightOutcome, type PreflightRequest, preflight } from './preflight.ts';

/** Cards a box usually has. */
const COUNTS = [1, 2, 4, 8] as const;

/** Full sharding, the leaner first; what a launch that does not shard would have to be changed to. */
const SHARDED = ['fsdp2', 'zero3'] as const;

export type SurveyOutcome =
  | { readonly kind: 'surveyed'; readonly survey: GpuSurvey }
  /** The settings or the model are not known: nothing can be said of any card. */
  | { readonly kind: 'unknown'; readonly reason: Diagnostic; readonly diagnostics: readonly Diagnostic[] }
  | Exclude<PreflightOutcome, Preflight>;

/** A launch as so many cards would see it. */
interface Way {
  readonly count: number;
  readonly values: PlanValues;
  /** Not as launched: sharded in this way. */
  readonly sharded?: Strategy;
}

/**
 * Which cards of the catalogue a launch fits: on the fewest of them, as it is or with which changes; where it does not as launched,
 * with its parameters sharded over more of them. Deterministic: nothing of this machine is asked but the files of the launch.
 */
export async function surveyGpus(ports: Ports, request: PreflightRequest): Promise<SurveyOutcome> {
  const launches: Preflight[] = [];
  for (const count of COUNTS) {
    // The size of the card does not matter here: only how many of them the launch sees.
    const outcome = await preflight(ports, { ...request, gpu: `80GiB:${count}` });
    if (outcome.kind !== 'checked') return outcome;
    launches.push(outcome);
  }
  const [first] = launches;
  const { report, values } = first!;
  if (!report.model || !values || !report.estimate) {
    const reason = report.plan?.verdict === 'unknown' ? report.plan.reason : report.diagnostics[0]!;
    return { kind: 'unknown', reason, diagnostics: report.diagnostics };
  }
  // Some settings cannot be estimated on several cards (an optimizer that does not shard): they are no way then.
  const ways = [...launchedWays(launches), ...shardedWays(values)].filter(
    (way) => estimateMemory(way.values, report.model!.facts).ok,
  );
  const planOn = cheapPlanner(first!);
  // Largest first: what a large card refuses, a smaller one of its generation refuses as well.
  const fits = GPU_CATALOGUE.map(asGpu)
    .map((gpu, order) => ({ gpu, order }))
    .sort((a, b) => b.gpu.totalBytes! - a.gpu.totalBytes!)
    .map(({ gpu, order }) => {
      const tried = ways.map((way) => () => fitOf(gpu, way, planOn(gpu, way)));
      const fit = tried.reduce<GpuFit | undefined>(
        (found, attempt) => (found && found.plan.verdict !== 'refuse' ? found : keepFirst(found, attempt())),
        undefined,
      );
      return { fit: fit!, order };
    })
    .sort((a, b) => a.order - b.order)
    .map(({ fit }) => fit);
  return { kind: 'surveyed', survey: { report, fits } };
}

/** Where no way fits, the launch as it is stands for the card. */
const keepFirst = (found: GpuFit | undefined, next: GpuFit): GpuFit =>
  found && next.plan.verdict === 'refuse' ? found : next;

function asGpu(card: (typeof GPU_CATALOGUE)[number]): Gpu {
  const resolved = resolveGpuName(typedGpuName(card));
  if (!resolved.ok) throw new Error(`the catalogue does not know its own card ${typedGpuName(card)}`);
  return resolved.value.gpus[0]!;
}

/** One way for each number of processes that the launch takes on one node; a launch that names its number has one. */
function launchedWays(launches: readonly Preflight[]): Way[] {
  const ways = new Map<number, Way>();
  for (const { values } of launches) {
    if (!values) continue;
    const count = values.distributed.processesPerNode;
    if (!ways.has(count)) ways.set(count, { count, values });
  }
  return [...ways.values()];
}

/** The launch with everything sharded over more cards and the same global batch, where accumulation can give it. */
function shardedWays(values: PlanValues): Way[] {
  const { distributed, gradientAccumulationSteps, quantization } = values;
  const shards = distributed.strategy !== 'none' && distributed.strategy !== 'ddp';
  // ZeRO-3 does not shard 4-bit weights of bitsandbytes usefully, and a launch that shards says itself over how many.
  if (shards || quantization || distributed.nodes > 1) return [];
  const rows = globalBatchSize(values);
  return COUNTS.filter((count) => count > distributed.processesPerNode).flatMap((count) => {
    const steps = (gradientAccumulationSteps * distributed.processesPerNode) / count;
    const batch = Number.isInteger(steps) ? { gradientAccumulationSteps: steps } : microBatchFor(rows, count);
    return SHARDED.flatMap((strategy) => {
      const sharded = { ...values, ...batch, distributed: { ...distributed, processesPerNode: count, strategy } };
      return globalBatchSize(sharded) === rows ? [{ count, values: sharded, sharded: strategy }] : [];
    });
  });
}

/** Without accumulation, where the rows divide; a count that cannot keep the global batch is left out. */
const microBatchFor = (rows: number, count: number): Partial<PlanValues> =>
  rows % count === 0 ? { perDeviceTrainBatchSize: rows / count, gradientAccumulationSteps: 1 } : {};

/** Plans a way on a card; a refusal is made once a generation and way, and then only its shortfall differs. */
function cheapPlanner({ policy, report, surroundings }: Preflight): (gpu: Gpu, way: Way) => Plan {
  const plans = new Map<string, Plan>();
  const refused = new Map<string, Extract<Plan, { verdict: 'refuse' }>>();
  const facts = report.model!.facts;
  return (gpu, way) => {
    const { computeCapability, totalBytes } = gpu;
    const generation = `${way.sharded} ${way.count} ${computeCapability?.major}.${computeCapability?.minor}`;
    const budget = memoryBudget(totalBytes!, 0, policy.headroom);
    const refusal = refused.get(generation);
    if (refusal) return withBudget(refusal, budget);
    const key = `${generation} ${totalBytes}`;
    const known = plans.get(key);
    if (known) return known;
    const device = { name: gpu.name, capacityBytes: totalBytes!, ...(computeCapability ? { computeCapability } : {}) };
    const plan = planRun({
      values: way.values,
      budget,
      policy,
      surroundings: { ...surroundings, computeCapability, hostRamBytes: undefined },
      estimate: (values) => estimateMemory(values, facts, device),
      stepSeconds: stepPredictor(facts, computeCapability),
      leastBytes: (values) => leastDeviceBytes(values, facts, device),
    });
    plans.set(key, plan);
    if (plan.verdict === 'refuse') refused.set(generation, plan);
    return plan;
  };
}

function withBudget(plan: Extract<Plan, { verdict: 'refuse' }>, { usableBytes }: MemoryBudget): Plan {
  const shortfallBytes = Math.max(0, plan.refusal.smallest.estimate.vram.devicePeakBytes - usableBytes);
  return { ...plan, refusal: { ...plan.refusal, shortfallBytes } };
}

/** Host RAM of all processes on one machine, bytes; the operating system and other programs come on top. */
const hostRamBytes = (estimate: MemoryEstimate): number => estimate.ram.neededBytes;

const fitOf = (gpu: Gpu, way: Way, plan: Plan): GpuFit => ({
  gpu: gpu.name,
  totalBytes: gpu.totalBytes!,
  count: way.count,
  ...(way.sharded ? { sharded: way.sharded } : {}),
  plan,
  distributed: way.values.distributed,
  hostRamBytes: hostRamBytes(plan.verdict === 'refuse' ? plan.refusal.smallest.estimate : plan.estimate),
});
