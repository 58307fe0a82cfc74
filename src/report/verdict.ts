import { type Diagnostic, error, formatBytes, GiB } from '../core/index.ts';
import { type MemoryEstimate, TERM_NAMES } from '../memory/index.ts';
import { DEFAULT_POLICY, type Plan, type Refusal } from '../planner/index.ts';
import { formatOrigin, LEVER_CLASSES, type Origin } from '../spec/index.ts';
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

const smallestNote = ({ smallest }: Refusal, plan: RefusedPlan): string =>
  smallest.changes.length === 0
    ? 'the policy permits nothing that would make it smaller'
    : `the smallest the policy permits needs ${formatBytes(smallest.estimate.vram.devicePeakBytes)}: ${groupByLever(
        smallest.changes,
      )
        .map((group) => movesText(group, plan.values.distributed))
        .join('; ')}`;

/** What would help: the mildest class that must be allowed, else a card of a size. */
function wayOut(plan: RefusedPlan, report: CheckReport): string {
  const { refusal } = plan;
  const allowed = (report.policy ?? DEFAULT_POLICY).allow;
  const [mildest] = refusal.wouldFit;
  if (mildest) {
    const moves = groupByLever(mildest.changes).map((group) => movesText(group, plan.values.distributed));
    const classes = LEVER_CLASSES.filter((one) => one === mildest.allow || allowed.includes(one));
    return `--allow ${classes.join(',')} would fit with ${formatBytes(mildest.estimate.vram.devicePeakBytes)}: ${moves.join('; ')}`;
  }
  if (refusal.shortfallBytes === 0 && refusal.hostShortfallBytes > 0) {
    return `${formatBytes(refusal.hostShortfallBytes)} more host RAM, or a larger GPU that needs no states in host RAM`;
  }
  const needed = refusal.smallest.estimate.vram.devicePeakBytes;
  const share = report.budget ? report.budget.headroomBytes / report.budget.capacityBytes : 0;
  return `a GPU with ${formatBytes(needed / (1 - share))} free, or a smaller model`;
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
      ...(hostOnly
        ? [`that plan fits the GPU but wants ${formatBytes(refusal.hostShortfallBytes)} more host RAM than there is`]
        : []),
      ...refusal.unavailable.map(({ lever, reason }) => `${lever} is left out: ${reason}`),
    ],
    help: wayOut(plan, report),
  });
}
