import { type Diagnostic, error, type Ports } from '../../core/index.ts';
import {
  classify,
  type Evidence,
  type Failure,
  looksOf,
  remediesOf,
  verdictOf,
  workOut,
} from '../../diagnosis/index.ts';
import type { DiagnosisNote, DiagnosisReport } from '../../report/index.ts';
import type { PreflightRequest } from '../preflight.ts';
import { groupLogs } from './log-groups.ts';
import { type OpenLog, readGroup } from './read-logs.ts';

export interface DiagnoseRequest {
  /** Paths of logs, `-` for stdin; none: the newest run folder. */
  readonly logs: readonly string[];
  /** What the run was told, as for `check`; undefined: not given. */
  readonly preflight: PreflightRequest | undefined;
}

export type DiagnoseOutcome =
  | {
      readonly kind: 'diagnosed';
      /** One a run. */
      readonly reports: readonly DiagnosisReport[];
      /** Files that could not be read. */
      readonly problems: readonly Diagnostic[];
    }
  | { readonly kind: 'usage' | 'unreadable'; readonly diagnostics: readonly Diagnostic[] };

/** Says of every run given what ended it and what to do. Nothing is started and nothing is written. */
export async function diagnose(_ports: Ports, request: DiagnoseRequest, open: OpenLog): Promise<DiagnoseOutcome> {
  if (request.logs.length === 0) {
    return {
      kind: 'usage',
      diagnostics: [error('usage', 'nothing to diagnose', { help: 'snug diagnose train.log' })],
    };
  }
  const reports: DiagnosisReport[] = [];
  const problems: Diagnostic[] = [];
  for (const group of groupLogs(request.logs)) {
    const reading = await readGroup(open, group);
    problems.push(...reading.problems);
    if (reading.evidence) reports.push(reportOf(reading.files, reading.evidence, reading.lines, reading.notes));
  }
  return { kind: 'diagnosed', reports, problems };
}

function recoveredNotes(evidence: Evidence): readonly DiagnosisNote[] {
  const finished: readonly DiagnosisNote[] = evidence.finished ? [{ id: 'finished', values: {} }] : [];
  const survived = evidence.lines.findLast((line) => line.followedByProgress);
  return [...finished, ...(survived ? [{ id: 'recovered' as const, values: { line: survived.line } }] : [])];
}

/** What is said of a failure; nothing that an unknown one does not bear out. */
function reportOf(
  files: readonly string[],
  evidence: Evidence,
  lines: number,
  notes: readonly DiagnosisNote[],
): DiagnosisReport {
  const failure = recognised(classify(evidence));
  if (!failure) {
    const empty = notes.some(({ id }) => id === 'empty');
    const said: readonly DiagnosisNote[] = empty ? notes : [{ id: 'nothing', values: { lines } }, ...notes];
    return {
      files,
      failure: undefined,
      verdict: undefined,
      sums: undefined,
      remedies: [],
      looks: lines > 0 && !evidence.finished ? looksOf(undefined) : [],
      notes: [...said, ...recoveredNotes(evidence)],
    };
  }
  return {
    files,
    failure,
    verdict: verdictOf(failure),
    sums: workOut(failure),
    remedies: remediesOf(failure).map((id) => ({ id })),
    looks: looksOf(failure),
    notes,
  };
}

/** A failure of which neither a kind nor a candidate is known is none that was recognised. */
const recognised = (failure: Failure | undefined): Failure | undefined =>
  failure?.kind === 'unknown' && failure.candidates.length === 0 ? undefined : failure;
