import { type Diagnostic, error, formatBytes, GiB } from '../core/index.ts';
import { smallestGpuWith } from '../hardware/index.ts';
import { type MemoryEstimate, TERM_NAMES } from '../memory/index.ts';
import { DEFAULT_POLICY, type Plan, type Refusal } from '../planner/index.ts';
import { formatOrigin, type Origin, type SpecChange, settingKey } from '../spec/index.ts';
import { groupByLever, movesText } from './change-text.ts';
import type { CheckReport } from './check-report.ts';
import { termText } from './memory-bars.ts';

/** `activations 18.9, weights 7.5, optimizer states 3.1, other 1.9 GiB`, the largest first. */
export function largestTerms({ vram }: MemoryEstimate): string {
  const sorted = TERM_NAMES.map((name) => ({ name: termText(name), bytes: vram.terms[name] })).sort(
    (a, b) => b.bytes - a.bytes,
  );
  const rest = sorted.slice(3).reduce((sum, { bytes }) => sum + bytes, 0);
  return `${[...sorted.slice(0, 3), { name: 'other', bytes: rest }]
    .filter(({ bytes }) => bytes >= 0.05 * GiB)
    .map(({ name, bytes }) => `${name} ${(bytes / GiB).toFixed(1)}`)
    .join(', ')} GiB`;
}

type RefusedPlan = Extract<Plan, { verdict: 'refuse' }>;

const movesOf = (changes: readonly SpecChange[], plan: RefusedPlan): string =>
  groupByLever(changes)
    .map((group) => movesText(group, plan.values.distributed))
    .join('; ');

const smallestNote = ({ smallest }: Refusal, plan: RefusedPlan): string =>
  smallest.changes.length === 0
    ? 'nothing that is permitted and can be told makes it smaller'
    : `the smallest the policy permits needs ${formatBytes(smallest.estimate.vram.devicePeakBytes)}: ${movesOf(smallest.changes, plan)}`;

/** The smallest cards that would do, headroom included; snug gpus looks at every card with all that differs between them. */
function cardsNote({ before, refusal: { smallest } }: RefusedPlan, { budget }: CheckReport): readonly string[] {
  const share = budget ? budget.headroomBytes / budget.capacityBytes : 0;
  const cardFor = ({ vram }: MemoryEstimate) => smallestGpuWith(vram.devicePeakBytes / (1 - share));
  const [asItIs, changed] = [cardFor(before), cardFor(smallest.estimate)];
  if (!changed) return [];
  const first = asItIs ? `${asItIs} as it is` : 'none as it is';
  return [`smallest card: ${asItIs === changed ? asItIs : `${first}, ${changed} with those changes`}`];
}

/** Levers nobody could pull, in one line: what the launch cannot be told, then what else stands in the way of which. */
function leftOutNotes({ unavailable }: Refusal): readonly string[] {
  const untold = unavailable.flatMap(({ reason, untold: settings = [] }) =>
    /cannot be told \S+$/.test(reason) ? settings : [],
  );
  const others = unavailable.filter(({ reason, untold: settings }) => !settings || !/cannot be told \S+$/.test(reason));
  const parts = [
    ...(untold.length > 0 ? [`the launch cannot be told ${[...new Set(untold)].map(settingKey).join(', ')}`] : []),
    ...(others.length > 0 ? [`left out: ${others.map(({ lever, reason }) => `${lever} (${reason})`).join(', ')}`] : []),
  ];
  return parts.length > 0 ? [parts.join('; ')] : [];
}

/** Memory of others that is worth freeing: the driver itself keeps a few hundred MiB. */
const WORTH_FREEING = GiB;

/** What a free card would do, where others hold some of this one. */
function freeTheCard(plan: RefusedPlan, { budget, device }: CheckReport): string | undefined {
  if (!budget || budget.usedByOthersBytes < WORTH_FREEING) return undefined;
  const whole = budget.capacityBytes - budget.headroomBytes;
  const asItIs = plan.before.vram.devicePeakBytes;
  const smallest = plan.refusal.smallest.estimate.vram.devicePeakBytes;
  if (Math.min(asItIs, smallest) > whole) return undefined;
  const card = device ? ` of GPU ${device.index}` : '';
  const then =
    asItIs <= whole ? 'then the run fits as it is' : `then it can be made to fit with ${formatBytes(smallest)}`;
  return `free the ${formatBytes(budget.usedByOthersBytes)}${card} that other programs hold (nvidia-smi lists them): ${then}`;
}

/** What the launch would have to be told. */
function tellMore({ refusal: { ifTold } }: RefusedPlan, { reading }: CheckReport): string | undefined {
  if (!ifTold) return undefined;
  const keys = ifTold.settings.map(settingKey);
  const native = reading.stack.some(({ dialect }) => dialect === 'native');
  const what = native
    ? `add ${keys.map((key) => `{${key}}`).join(' ')} to command`
    : `let the launch be told ${keys.join(', ')}`;
  return `${what}: ${formatBytes(ifTold.estimate.vram.devicePeakBytes)} would fit`;
}

function allowMore(plan: RefusedPlan, report: CheckReport): string | undefined {
  const [mildest] = plan.refusal.wouldFit;
  if (!mildest) return undefined;
  const allowed = (report.policy ?? DEFAULT_POLICY).allow;
  const classes = [...allowed, mildest.allow];
  return `--allow ${classes.join(',')} would fit with ${formatBytes(mildest.estimate.vram.devicePeakBytes)}: ${movesOf(mildest.changes, plan)}`;
}

/** A card or machine on which the smallest permitted plan fits. */
function largerMachine({ refusal }: RefusedPlan, { budget }: CheckReport): string {
  if (refusal.shortfallBytes === 0 && refusal.hostShortfallBytes > 0) {
    return `${formatBytes(refusal.hostShortfallBytes)} more host RAM, or a larger GPU that needs no states in host RAM`;
  }
  const needed = refusal.smallest.estimate.vram.devicePeakBytes;
  const share = budget ? budget.headroomBytes / budget.capacityBytes : 0;
  // Headroom is a share of the whole card: of this one, which is large enough but not free enough, it is what it is.
  const here = budget && needed <= budget.capacityBytes - budget.headroomBytes ? needed + budget.headroomBytes : 0;
  return `a GPU with ${formatBytes(Math.max(here, needed / (1 - share)))} free, or a smaller model`;
}

/** What would help: a card without others on it, a launch that can be told more, a class that must be allowed, else a larger card. */
function wayOut(plan: RefusedPlan, report: CheckReport): string {
  const ways = [freeTheCard(plan, report), tellMore(plan, report), allowMore(plan, report)].filter(
    (way) => way !== undefined,
  );
  return ways.length > 0 ? ways.join('; or ') : largerMachine(plan, report);
}

/** The text at a place: a line of a file, a flag with its value; undefined where there is none to show. */
function excerptAt(report: CheckReport, origin: Origin): string | undefined {
  if (origin.kind === 'file') return report.sources?.[origin.path]?.split(/\r?\n/)[origin.line - 1]?.trim();
  if (origin.kind !== 'argv') return undefined;
  const token = report.argv[origin.index];
  const before = report.argv[origin.index - 1];
  return token && before?.startsWith('-') && !token.startsWith('-') ? `${before} ${token}` : token;
}

/** Where the setting that gives most stands. */
function placeOf(report: CheckReport): Pick<Diagnostic, 'location' | 'excerpt'> {
  const origin = report.spec.perDeviceTrainBatchSize?.origin;
  if (!origin) return {};
  const excerpt = excerptAt(report, origin);
  return { location: formatOrigin(origin), ...(excerpt ? { excerpt } : {}) };
}

/**
 * A refused plan as a message: what is missing on which card, the setting that could give most, what the memory is for, what stood
 * in the way, and the way out.
 */
export function refusalDiagnostic(report: CheckReport, plan: RefusedPlan): Diagnostic {
  const { refusal, before } = plan;
  const { budget } = report;
  const free = budget ? ` on a GPU with ${formatBytes(budget.capacityBytes - budget.usedByOthersBytes)} free` : '';
  const kept =
    budget && budget.headroomBytes > 0 ? `, ${formatBytes(budget.headroomBytes)} of it kept as headroom` : '';
  const hostOnly = refusal.shortfallBytes === 0 && refusal.hostShortfallBytes > 0;
  return error('does-not-fit', `this run needs ${formatBytes(before.vram.devicePeakBytes)}${free}${kept}`, {
    ...placeOf(report),
    notes: [
      largestTerms(before),
      smallestNote(refusal, plan),
      ...(hostOnly ? [] : cardsNote(plan, report)),
      ...(hostOnly
        ? [`that plan fits the GPU but wants ${formatBytes(refusal.hostShortfallBytes)} more host RAM than there is`]
        : []),
      ...leftOutNotes(refusal),
    ],
    help: wayOut(plan, report),
  });
}
