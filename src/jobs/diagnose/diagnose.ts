import { join, relative } from 'node:path';
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
import { readNvidiaSmiText, type ShownCards } from '../../hardware/index.ts';
import type { DiagnosisNote, DiagnosisReport } from '../../report/index.ts';
import type { PreflightRequest } from '../preflight.ts';
import { cardNotes, withCards } from './card-notes.ts';
import { withKernelLog } from './kernel-log.ts';
import { groupLogs, type LogGroup } from './log-groups.ts';
import { priced, type Tried } from './price.ts';
import { type GroupReading, type OpenLog, readGroup, readSmallText } from './read-logs.ts';
import { newestRun, readRun } from './run-evidence.ts';

export interface DiagnoseRequest {
  /** Paths of logs, `-` for stdin; none: the run folder, or the newest one. */
  readonly logs: readonly string[];
  /** `--run`. */
  readonly runFolder: string | undefined;
  /** What nvidia-smi and the kernel's log printed; undefined: not given. */
  readonly nvidiaSmi: string | undefined;
  readonly dmesg: string | undefined;
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

/** What stands beside the logs, read once for all runs. */
interface Beside {
  readonly kernel: Evidence | undefined;
  readonly cards: ShownCards | undefined;
  readonly problems: readonly Diagnostic[];
}

async function readBeside(request: DiagnoseRequest, open: OpenLog): Promise<Beside> {
  const { dmesg, nvidiaSmi } = request;
  const kernel = dmesg === undefined ? undefined : await readGroup(open, oneFile(dmesg));
  const cards = nvidiaSmi === undefined ? undefined : await readSmallText(open, nvidiaSmi);
  return {
    kernel: kernel?.evidence,
    cards: typeof cards === 'string' ? readNvidiaSmiText(cards) : undefined,
    problems: [...(kernel?.problems ?? []), ...(typeof cards === 'object' ? [cards] : [])],
  };
}

const oneFile = (path: string): LogGroup => ({ files: [{ path, rank: undefined }] });

/** Says of every run given what ended it and what to do. Nothing is started and nothing is written. */
export async function diagnose(ports: Ports, request: DiagnoseRequest, open: OpenLog): Promise<DiagnoseOutcome> {
  const beside = await readBeside(request, open);
  const reports: DiagnosisReport[] = [];
  const problems: Diagnostic[] = [...beside.problems];
  const conclude = async (
    reading: GroupReading,
    asked: PreflightRequest | undefined,
    tried: Tried = [],
  ): Promise<void> => {
    problems.push(...reading.problems);
    if (!reading.evidence) return;
    const report = reportOf(reading.files, reading.evidence, reading.lines, reading.notes, beside);
    reports.push(asked ? await priced(ports, asked, report, tried) : report);
  };
  if (request.logs.length > 0 && request.runFolder === undefined) {
    for (const group of groupLogs(request.logs)) await conclude(await readGroup(open, group), request.preflight);
    return { kind: 'diagnosed', reports, problems };
  }
  const folder = request.runFolder ?? newestRun(ports);
  if (folder === undefined) {
    return {
      kind: 'usage',
      diagnostics: [
        error('usage', 'nothing to diagnose: no log was given, and there is no run folder below .snug/runs here', {
          help: 'snug diagnose train.log, or kubectl logs POD | snug diagnose -',
        }),
      ],
    };
  }
  const run = readRun(ports, folder);
  if (!run.ok) return { kind: 'unreadable', diagnostics: run.error };
  const log = await readGroup(open, oneFile(run.value.logPath));
  const evidence = run.value.evidence ? { ...log.evidence, ...run.value.evidence } : log.evidence;
  const files = [join(folder, relative(join(ports.cwd, folder), run.value.logPath))];
  const { request: asked, tried, notes } = run.value;
  await conclude({ ...log, files, evidence, notes: [...log.notes, ...notes] }, request.preflight ?? asked, tried);
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
  log: Evidence,
  lines: number,
  read: readonly DiagnosisNote[],
  { kernel, cards }: Beside,
): DiagnosisReport {
  const joined = kernel && withKernelLog(log, kernel, recognised(classify(log)));
  const evidence = joined?.evidence ?? log;
  const notes = [...read, ...(joined?.notes ?? []), ...(cards ? cardNotes(cards) : [])];
  const found = recognised(classify(evidence));
  const failure = found && cards ? withCards(found, cards) : found;
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
