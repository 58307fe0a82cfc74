import { join } from 'node:path';
import { GiB, MiB, type Ports } from '../../core/index.ts';
import type { Failure, RemedyId, Verdict } from '../../diagnosis/index.ts';
import { writeLaunch } from '../../dialects/index.ts';
import { GPU_CATALOGUE } from '../../hardware/index.ts';
import type { MemoryEstimate } from '../../memory/index.ts';
import {
  calibratedNeed,
  DEFAULT_POLICY,
  LEVERS,
  type NextStep,
  planRun,
  replan,
  shortfallFactor,
} from '../../planner/index.ts';
import type { DiagnosisReport, FittingSettings, LargerCard, Remedy } from '../../report/index.ts';
import { type PlanValues, type SettingName, type SpecChange, settingKey } from '../../spec/index.ts';
import { hostRamEnded } from '../host-ram-levers.ts';
import { moved, startingValues } from '../next-attempt.ts';
import { planWithPackages } from '../plan-with-packages.ts';
import { type Preflight, type PreflightRequest, preflight } from '../preflight.ts';
import { shownEdits } from './shown-edits.ts';

/** The lever that does what a remedy says. */
const LEVER_OF: Partial<Record<RemedyId, string>> = {
  'micro-batch': 'micro-batch',
  'gradient-checkpointing': 'gradient-checkpointing',
  'fused-loss': 'fused-loss',
  'shorter-rows': 'max-length',
  lora: 'lora',
  qlora: 'qlora',
  'optimizer-8bit': 'optimizer-8bit',
  'optimizer-offload': 'optimizer-paged',
  'eval-batch': 'eval-batch',
  'load-sixteen-bit': 'frozen-base-16bit',
};
const HOST_LEVER_OF: Partial<Record<RemedyId, string>> = {
  'fewer-workers': 'workers',
  'less-offload': 'offload',
  'load-once': 'ranks',
  'no-pinning': 'pin-memory',
};

/** Kinds that smaller settings answer. */
const SHRINKS: readonly Failure['kind'][] = [
  'vram_capacity',
  'vram_load_spike',
  'vram_eval_spike',
  'vram_checkpoint_save_spike',
  'vram_fragmentation',
  'nccl_hang_after_oom',
];

/** What the attempts of a run changed, each from the launch as it came; none: the launch itself was run. */
export type Tried = readonly (readonly SpecChange[])[];

type Priced = Pick<DiagnosisReport, 'remedies'> &
  Partial<Pick<DiagnosisReport, 'fitting' | 'larger' | 'neededRamBytes' | 'settings' | 'versions'>> & {
    readonly verdict?: Verdict;
    /** Why there is no price. */
    readonly reason?: string;
  };

/** The card of the run as `--gpu` names one, where the log tells its size. */
const cardOf = ({ numbers }: Failure): string | undefined =>
  numbers.totalBytes === undefined ? undefined : `${Math.floor(numbers.totalBytes / MiB)}MiB`;

/** The launch on the card that the failure was seen on, with as many of them as it starts processes. */
export async function preflightOf(
  ports: Ports,
  request: PreflightRequest,
  failure: Failure,
): Promise<Preflight | string> {
  const card = request.gpu ?? cardOf(failure);
  const on = async (gpu: string | undefined) =>
    preflight(ports, { ...request, ...(gpu === undefined ? {} : { gpu }), starts: false });
  const first = await on(card);
  if (first.kind !== 'checked') return first.diagnostics[0]!.message;
  const processes = first.report.spec.distributed?.value?.processesPerNode ?? 1;
  if (processes < 2 || card === undefined || request.gpu !== undefined) return first;
  const second = await on(`${card}:${processes}`);
  return second.kind === 'checked' ? second : second.diagnostics[0]!.message;
}

const WORTH_BYTES = 64 * MiB;

/** What every remedy brings by itself, and which of them the settings have already. */
function pricedRemedies(found: Preflight, values: PlanValues, remedies: readonly Remedy[], used: readonly string[]) {
  const peakOf = (at: PlanValues): number | undefined => {
    const estimate = found.estimate?.(at);
    return estimate?.ok ? estimate.value.vram.devicePeakBytes : undefined;
  };
  const before = peakOf(values);
  return remedies.flatMap((remedy): Remedy[] => {
    const lever = LEVERS.find(({ id }) => id === LEVER_OF[remedy.id]);
    if (!lever) return [remedy];
    if (used.includes(lever.id)) return [];
    const options = lever.options(values, found.surroundings);
    if (typeof options === 'string') return [remedy];
    if (options.length === 0) return [];
    const after = peakOf({ ...values, ...options[0] });
    if (before === undefined || after === undefined) return [remedy];
    // What takes nothing off this run's peak is no remedy for it.
    return before - after < WORTH_BYTES ? [] : [{ ...remedy, savesBytes: before - after }];
  });
}

/** Cards with enough memory: all of the smallest size that will do, then one of the next. */
function cardsWith(bytes: number): readonly string[] {
  const fitting = GPU_CATALOGUE.filter(({ memoryMiB }) => memoryMiB * MiB >= bytes).sort(
    (a, b) => a.memoryMiB - b.memoryMiB,
  );
  const sizes = [...new Set(fitting.map(({ sizeGb }) => sizeGb))].sort((a, b) => a - b).slice(0, 2);
  return sizes
    .flatMap((size) => fitting.filter(({ sizeGb }) => sizeGb === size).slice(0, 3))
    .map(({ id, sizeGb }) => `${id.toUpperCase()} (${sizeGb} GB)`);
}

function largerCard(found: Preflight, values: PlanValues, failure: Failure): LargerCard | undefined {
  const { estimate, budget, policy, surroundings } = found;
  const predicted = estimate?.(values);
  if (!estimate || !budget || !predicted?.ok) return undefined;
  const plan = planRun({ values, budget, policy, surroundings, estimate });
  const smallest = plan.verdict === 'refuse' ? plan.refusal.smallest.estimate : plan.estimate;
  const factor = Math.min(2, shortfallFactor(predicted.value, failure, budget));
  const neededBytes = Math.ceil(calibratedNeed(smallest, factor) / (1 - policy.headroom));
  return { neededBytes, cards: cardsWith(neededBytes) };
}

function fittingOf(
  ports: Ports,
  found: Preflight,
  { plan: { changes, estimate, setAside } }: Extract<NextStep, { kind: 'retry' }>,
  failed: MemoryEstimate | undefined,
): FittingSettings | undefined {
  const fitted = writeLaunch(found.reading, { changes, copyFolder: join(ports.cwd, '.snug', 'copies') });
  if (!fitted.ok) return undefined;
  return {
    edits: shownEdits(found.reading, changes, fitted.value),
    beforeBytes: failed?.vram.devicePeakBytes,
    afterBytes: setAside ? undefined : estimate?.vram.devicePeakBytes,
  };
}

/** A retry may also be the smallest there is, to be tried for want of better; here only what is predicted to fit is called so. */
const surelyFits = ({ budget }: Preflight, { plan }: Extract<NextStep, { kind: 'retry' }>): boolean => {
  const needed = plan.calibratedBytes ?? (plan.setAside ? undefined : plan.estimate?.vram.devicePeakBytes);
  return needed === undefined || budget === undefined || needed <= budget.usableBytes;
};

/** Prices what to do about a failure of device memory, and looks for settings that fit after what it showed. */
async function priceDevice(
  ports: Ports,
  found: Preflight,
  failure: Failure,
  remedies: readonly Remedy[],
  tried: Tried,
): Promise<Priced> {
  const values = startingValues(found);
  if (!values) return { remedies, reason: 'the batch size of this launch is not known' };
  const estimate = found.values ? found.estimate : undefined;
  const attempts = (tried.length > 0 ? tried : [[]]).map((changes) => {
    const at = moved(values, changes)!;
    const predicted = estimate?.(at);
    return { values: at, estimate: predicted?.ok ? predicted.value : undefined };
  });
  const failed = attempts.at(-1)!;
  if (!SHRINKS.includes(failure.kind)) return { remedies: pricedRemedies(found, failed.values, remedies, []) };
  const question = { reading: found.reading, hardware: found.hardware, starts: false };
  const { plan: step } = await planWithPackages(
    ports,
    question,
    found.surroundings,
    (surroundings) =>
      replan({
        values,
        attempts,
        failure,
        budget: found.budget,
        policy: { ...DEFAULT_POLICY, ...found.policy, maxRetries: Math.max(attempts.length, found.policy.maxRetries) },
        surroundings,
        estimate,
        checkpoint: undefined,
      }),
    (next) => (next.kind === 'retry' ? next.plan.changes : []),
  );
  if (step.kind === 'retry' && surelyFits(found, step)) {
    const fitting = fittingOf(ports, found, step, failed.estimate);
    const used = step.plan.changes.map(({ lever }) => lever);
    return {
      ...(fitting ? { fitting } : {}),
      remedies: pricedRemedies(found, failed.values, remedies, fitting ? used : []),
    };
  }
  const priced = pricedRemedies(found, failed.values, remedies, []);
  const larger = largerCard(found, failed.values, failure);
  return larger ? { remedies: priced, larger, verdict: 'upgrade_vram' } : { remedies: priced };
}

/** Prices what to do about a failure of host memory, and says how much the run needs by the estimate. */
function priceHost(found: Preflight, failure: Failure, remedies: readonly Remedy[]): Priced {
  const { levers } = hostRamEnded({
    failure,
    evidence: { cgroupOomKills: 0, peakRamBytes: 0 } as Parameters<typeof hostRamEnded>[0]['evidence'],
    values: found.values,
    estimate: found.estimate,
    host: undefined,
  });
  const priced = remedies.flatMap((remedy): Remedy[] => {
    const id = HOST_LEVER_OF[remedy.id];
    if (id === undefined) return [remedy];
    const lever = levers.find((one) => one.lever === id);
    if (lever) return [lever.savesBytes === undefined ? remedy : { ...remedy, savesBytes: lever.savesBytes }];
    // The settings are known, and this one has nothing to give.
    return found.values && id !== 'ranks' ? [] : [remedy];
  });
  const needed = found.report.estimate?.ram.neededBytes;
  return { remedies: priced, ...(needed === undefined ? {} : { neededRamBytes: Math.max(needed, GiB) }) };
}

/** A whole config.json says more than a ticket wants. */
const MOST_LETTERS = 200;

/** What a ticket wants to know of the run. */
function ofLaunch({ report: { spec } }: Preflight): Pick<DiagnosisReport, 'settings' | 'versions'> {
  const told = (Object.keys(spec) as SettingName[])
    .filter((name) => name !== 'versions')
    .flatMap((name) => {
      const setting = spec[name];
      if (!setting || setting.value === null || setting.origin.kind === 'default') return [];
      const { value } = setting;
      const text = typeof value === 'object' ? JSON.stringify(value) : String(value);
      return text.length > MOST_LETTERS ? [] : [`${settingKey(name)}: ${text}`];
    });
  const versions = Object.entries(spec.versions?.value ?? {}).map(([name, version]) => `${name} ${version}`);
  return { settings: told, ...(versions.length > 0 ? { versions: versions.join(', ') } : {}) };
}

/** A report with its remedies priced by what the launch says, and by what was `tried` of it already. */
export async function priced(
  ports: Ports,
  request: PreflightRequest,
  report: DiagnosisReport,
  tried: Tried = [],
): Promise<DiagnosisReport> {
  const { failure, remedies } = report;
  if (!failure || (failure.resource !== 'vram' && failure.resource !== 'host_ram')) return report;
  const found = await preflightOf(ports, request, failure);
  const unpriced = (reason: string): DiagnosisReport => ({
    ...report,
    notes: [...report.notes, { id: 'not-priced', values: { reason } }],
  });
  if (typeof found === 'string') return unpriced(found);
  const { reason, ...prices } =
    failure.resource === 'vram'
      ? await priceDevice(ports, found, failure, remedies, tried)
      : priceHost(found, failure, remedies);
  const plan = found.report.plan;
  const why = reason ?? (plan?.verdict === 'unknown' && !prices.fitting ? plan.reason.message : undefined);
  const whole = { ...report, ...ofLaunch(found), ...prices };
  return why === undefined
    ? whole
    : { ...whole, notes: [...whole.notes, { id: 'not-priced', values: { reason: why } }] };
}
