import { type Diagnostic, formatBytes, note, type Ports, type Result, warning } from '../core/index.ts';
import { BLOCK_SIZE_ORIGIN, type FoundVersions, type LaunchReading, parseGivenSettings } from '../dialects/index.ts';
import { bf16Warnings, detectHardware, type Hardware, processesOnGpus } from '../hardware/index.ts';
import {
  type DeviceFacts,
  estimateMemory,
  leastDeviceBytes,
  type MemoryBudget,
  type MemoryEstimate,
} from '../memory/index.ts';
import { type Plan, type Policy, planRun, type Surroundings, stepPredictor } from '../planner/index.ts';
import type { CheckReport } from '../report/index.ts';
import { type PlanValues, planValues, type SpecChange, type TrainingSpec } from '../spec/index.ts';
import { type ChosenGpu, chooseGpu } from './choose-gpus.ts';
import { diskWarnings } from './disk-check.ts';
import { findVersions } from './found-versions.ts';
import { plannedGpu, withinAllocation } from './job-allocation.ts';
import { type LaunchTarget, readTarget, readWithoutFiles, type TargetReading } from './launch-target.ts';
import { type FoundModel, findModel } from './model.ts';
import { planWithPackages, surroundingsOf } from './plan-with-packages.ts';
import { mergePolicy, type PolicyFlags } from './policy.ts';
import { sharedMemoryWarnings } from './shared-memory-check.ts';
import { assumedVersions, versionSetting } from './version-settings.ts';

export interface PreflightRequest {
  readonly target: LaunchTarget;
  /** `--gpu`. */
  readonly gpu?: string;
  /** `--model`. */
  readonly model?: string;
  readonly policy: PolicyFlags;
  /** `--set`, as typed. */
  readonly set: readonly string[];
  /** How many other plans to name beside the best. */
  readonly alternatives?: number;
  /** Whether the trainer will really be started here: only then its Python is asked which packages import. */
  readonly starts: boolean;
}

/** What the rest of a run needs beside the report. */
export interface Preflight {
  readonly kind: 'checked';
  readonly report: CheckReport;
  readonly reading: LaunchReading;
  readonly policy: Policy;
  /** undefined: the settings that size the run are not all known. */
  readonly values: PlanValues | undefined;
  readonly budget: MemoryBudget | undefined;
  /** undefined: the model is not known. */
  readonly estimate: ((values: PlanValues) => Result<MemoryEstimate>) | undefined;
  /** Predicted seconds of a step; undefined: the model is not known. */
  readonly stepSeconds: ((values: PlanValues) => number) | undefined;
  /** Device bytes that it is never below; see a plan request. */
  readonly leastBytes: ((values: PlanValues) => Result<number>) | undefined;
  readonly chosen: ChosenGpu | undefined;
  readonly hardware: Hardware;
  /** With what is known of the trainer's packages by now. */
  readonly surroundings: Surroundings;
}

export type PreflightOutcome =
  | Preflight
  /** Wrong flags: exit 2. */
  | { readonly kind: 'usage'; readonly diagnostics: readonly Diagnostic[] }
  /** The launch config cannot be read: exit 3. */
  | {
      readonly kind: 'unreadable';
      readonly diagnostics: readonly Diagnostic[];
      /** What the command line alone says, where there is one. */
      readonly partial?: LaunchReading;
    };

/** A launch with the machine it would run on. */
interface ReadOnMachine extends TargetReading {
  readonly hardware: Hardware;
  readonly versions: FoundVersions;
}

/**
 * Reads the launch, finds the model and the machine, predicts, and plans. Nothing is started (but the trainer's Python is
 * asked for packages where a plan rests on one) and nothing is written.
 */
export async function preflight(ports: Ports, request: PreflightRequest): Promise<PreflightOutcome> {
  const given = parseGivenSettings(request.set);
  if (!given.ok) return { kind: 'usage', diagnostics: given.error };
  const read = await readOnMachine(ports, request);
  if (read.kind !== 'read') return read;
  const policy = mergePolicy(ports, read.on.policy, request.policy);
  if (!policy.ok) {
    const ours = policy.error.every(({ location }) => location?.startsWith('--'));
    return { kind: ours ? 'usage' : 'unreadable', diagnostics: policy.error };
  }
  return examine(ports, request, read.on, policy.value, given.value);
}

/** Which GPUs are visible depends on the launch, and how many processes it starts on which GPUs are visible. */
async function readOnMachine(
  ports: Ports,
  request: PreflightRequest,
): Promise<{ kind: 'read'; on: ReadOnMachine } | Exclude<PreflightOutcome, Preflight>> {
  const first = readTarget(ports, request.target, undefined);
  if (!first.ok) {
    const partial = readWithoutFiles(ports, request.target);
    return { kind: 'unreadable', diagnostics: first.error, ...(partial ? { partial } : {}) };
  }
  const { env, spec } = first.value.reading;
  const { allocation } = first.value.reading;
  const gpu = plannedGpu(request.gpu, allocation, ports.environment);
  const detected = await detectHardware(ports, {
    ...(gpu === undefined ? {} : { gpu }),
    ...(spec.outputDir?.value ? { outputDir: spec.outputDir.value } : {}),
    environment: { ...ports.environment, ...env },
  });
  if (!detected.ok) return { kind: 'usage', diagnostics: detected.error };
  const hardware = withinAllocation(detected.value, allocation, ports.environment);
  const versions = findVersions(ports, first.value.reading);
  const gpus = hardware.source === 'none' ? undefined : hardware.gpus.length;
  if (gpus === undefined && Object.keys(versions).length === 0) {
    return { kind: 'read', on: { ...first.value, hardware, versions } };
  }
  const second = readTarget(ports, request.target, gpus, versions);
  if (!second.ok) return { kind: 'unreadable', diagnostics: second.error };
  return { kind: 'read', on: { ...second.value, hardware, versions } };
}

async function examine(
  ports: Ports,
  asked: PreflightRequest,
  on: ReadOnMachine,
  policy: Policy,
  given: TrainingSpec,
): Promise<Preflight> {
  const { reading, hardware } = on;
  const model = await findModel(ports, reading.spec, asked.model);
  const spec = settle(
    { ...reading.spec, ...versionSetting(on.versions, reading.spec), ...given },
    model.ok ? model.value : undefined,
  );
  const values = planValues(spec, model.ok ? model.value.facts.checkpointDtype : undefined);
  const distributed = spec.distributed?.value;
  const chosen = chooseGpu(hardware, distributed ?? NO_LAUNCHER, policy.headroom);
  const gpu = isChosen(chosen) ? chosen : undefined;
  const estimate = model.ok && !reading.notEstimated ? estimatorFor(model.value, gpu) : undefined;
  const stepSeconds = model.ok ? stepPredictor(model.value.facts, gpu?.gpu.computeCapability) : undefined;
  const leastBytes = model.ok ? boundFor(model.value, gpu) : undefined;
  const before = estimate && values.ok ? estimate(values.value) : undefined;

  const missing = [
    ...(reading.notEstimated ? [reading.notEstimated] : []),
    ...(model.ok ? [] : model.error),
    ...(values.ok ? [] : values.error),
    ...(before && !before.ok ? before.error : []),
    ...(isChosen(chosen) ? [] : chosen),
  ];
  const base: CheckReport = {
    argv: reading.command.argv,
    env: reading.env,
    reading,
    spec,
    hardware,
    policy,
    sources: on.sources,
    diagnostics: [
      ...reading.diagnostics,
      ...assumedVersions(spec, on.versions),
      ...(model.ok ? modelNotes(model.value) : []),
      ...(await withHolders(ports, gpu)),
      ...hostWarnings(hardware, before, reading.allocation),
      ...(values.ok && before?.ok ? diskWarnings(hardware, values.value, before.value) : []),
      ...(values.ok ? sharedMemoryWarnings(hardware, values.value) : []),
    ],
    ...(model.ok ? { model: { ...model.value.located, facts: model.value.facts } } : {}),
    ...(gpu ? { device: gpu.gpu, budget: gpu.budget } : {}),
    ...(before?.ok ? { estimate: before.value } : {}),
  };
  const question = { reading, hardware, starts: asked.starts && reading.startsElsewhere === undefined };
  const surroundings = surroundingsOf(ports, question, gpu?.gpu.computeCapability);
  const common = {
    kind: 'checked',
    reading,
    policy,
    values: values.ok ? values.value : undefined,
    budget: gpu?.budget,
    estimate,
    stepSeconds,
    leastBytes,
    chosen: gpu,
    hardware,
    surroundings,
  } as const;
  const [reason, ...more] = missing;
  if (reason || !values.ok || !estimate || !gpu) {
    const diagnostics = [...base.diagnostics, ...more];
    return { ...common, report: { ...base, diagnostics, plan: { verdict: 'unknown', reason: reason! } } };
  }
  const request = {
    values: values.value,
    budget: gpu.budget,
    policy,
    estimate,
    ...(leastBytes ? { leastBytes } : {}),
    ...(stepSeconds ? { stepSeconds } : {}),
  };
  const planned = await planWithPackages(
    ports,
    question,
    surroundings,
    (around) =>
      planRun({
        ...request,
        surroundings: around,
        ...(asked.alternatives === undefined ? {} : { alternatives: asked.alternatives }),
      }),
    changesNamed,
  );
  return {
    ...common,
    surroundings: planned.surroundings,
    report: {
      ...base,
      plan: planned.plan,
      diagnostics: [
        ...base.diagnostics,
        ...(computesInBf16({ ...values.value, ...planned.plan.values }) ? bf16Warnings(gpu.gpu) : []),
        ...planned.diagnostics,
      ],
    },
  };
}

/** A refusal promises plans too: what it says would fit must rest on packages that are there. */
const changesNamed = (plan: Plan): readonly SpecChange[] =>
  plan.verdict === 'refuse'
    ? [...plan.refusal.smallest.changes, ...plan.refusal.wouldFit.flatMap(({ changes }) => changes)]
    : plan.changes;

const computesInBf16 = ({ dtype, mixedPrecision, quantization }: PlanValues): boolean =>
  mixedPrecision === 'bf16' || (mixedPrecision === 'no' && dtype === 'bf16') || quantization?.computeDtype === 'bf16';

const NO_LAUNCHER = { nodes: 1, processesPerNode: 1, strategy: 'none', offload: [] } as const;

const isChosen = (chosen: ChosenGpu | readonly Diagnostic[]): chosen is ChosenGpu => 'budget' in chosen;

/** Remembers by the values themselves: the planner asks again for the launch as it came. */
function estimatorFor({ facts }: FoundModel, gpu: ChosenGpu | undefined) {
  const known = new WeakMap<PlanValues, Result<MemoryEstimate>>();
  return (values: PlanValues): Result<MemoryEstimate> => {
    const estimate = known.get(values) ?? estimateMemory(values, facts, deviceFacts(gpu));
    known.set(values, estimate);
    return estimate;
  };
}

const boundFor =
  ({ facts }: FoundModel, gpu: ChosenGpu | undefined) =>
  (values: PlanValues): Result<number> =>
    leastDeviceBytes(values, facts, deviceFacts(gpu));

/** What the estimator is told of the card. */
export const deviceFacts = (chosen: ChosenGpu | undefined): DeviceFacts => {
  if (!chosen) return {};
  const { name, computeCapability } = chosen.gpu;
  return {
    name,
    capacityBytes: chosen.budget.capacityBytes,
    ...(computeCapability ? { computeCapability } : {}),
  };
};

/** The note on memory of others names who holds it, as far as the driver tells: not under WSL, nor in some containers. */
async function withHolders(ports: Ports, chosen: ChosenGpu | undefined): Promise<readonly Diagnostic[]> {
  if (!chosen?.diagnostics.some(({ code }) => code === 'gpu-in-use')) return chosen?.diagnostics ?? [];
  const held = (await processesOnGpus(ports, [chosen.gpu])).map(
    ({ pid, usedBytes }) =>
      `process ${pid} holds ${usedBytes === undefined ? 'an unknown part' : formatBytes(usedBytes)}`,
  );
  return chosen.diagnostics.map((one) =>
    one.code === 'gpu-in-use' && held.length > 0 ? { ...one, notes: [...(one.notes ?? []), held.join(', ')] } : one,
  );
}

const modelNotes = ({ located }: FoundModel): Diagnostic[] =>
  (located.notes ?? []).map((text) => note('model-found', text, { location: located.place }));

/** What only the model can tell: the dtype of its checkpoint, and rows as long as its positions. */
function settle(spec: TrainingSpec, model: FoundModel | undefined): TrainingSpec {
  if (!model) return spec;
  const { checkpointDtype: stored, maxPositionEmbeddings: positions } = model.facts;
  const place = `config.json of ${model.located.nameOrPath}`;
  // transformers takes the dtype of the weights where config.json names none, and such checkpoints are from before 16 bits.
  const dtype: TrainingSpec =
    spec.dtype?.value === 'auto'
      ? { dtype: { value: stored ?? 'fp32', origin: { kind: 'derived', from: stored ? place : `${place}, no dtype` } } }
      : {};
  const asked =
    spec.maxLength?.value === null && spec.maxLength.origin.kind === 'derived' && spec.maxLength.origin.from;
  // Tokenizers give no less than the positions, and above 1024 which of the two counts is not known.
  const length: TrainingSpec =
    asked === BLOCK_SIZE_ORIGIN && positions !== undefined && positions <= 1024
      ? { maxLength: { value: positions, origin: { kind: 'derived', from: place } } }
      : {};
  return { ...spec, ...dtype, ...length };
}

function hostWarnings(
  hardware: Hardware,
  estimate: Result<MemoryEstimate> | undefined,
  allocation: LaunchReading['allocation'],
): Diagnostic[] {
  const host = hardware.host;
  const elsewhere = hardware.source === 'planned' && allocation?.hostRamBytes === undefined;
  if (!host || !estimate?.ok || estimate.value.ram.neededBytes <= host.availableBytes || elsewhere) return [];
  return [
    warning('host-ram-short', 'this run may need more host RAM than is available', {
      notes: [`limited by ${host.limitedBy}`],
      help: 'fewer dataloader workers, no offload, or a machine with more RAM',
    }),
  ];
}
