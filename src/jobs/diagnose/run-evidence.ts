import { isAbsolute, join } from 'node:path';
import { type Diagnostic, error, fail, formatBytes, ok, type Ports, type Result } from '../../core/index.ts';
import type { Evidence } from '../../diagnosis/index.ts';
import type { DiagnosisNote } from '../../report/index.ts';
import type { SpecChange } from '../../spec/index.ts';
import { readContinueRecord } from '../continue-record.ts';
import type { PreflightRequest } from '../preflight.ts';

/** An attempt of a run of snug's own, as its folder keeps it. */
export interface RunEvidence {
  readonly folder: string;
  /** What was seen while it ran; undefined: snug itself was ended before it could be written. */
  readonly evidence: Evidence | undefined;
  readonly logPath: string;
  /** What the run was asked for; undefined: it began in another folder, or the record is not whole. */
  readonly request: PreflightRequest | undefined;
  /** What each attempt changed, from the launch as it came; the last one is the one that failed. */
  readonly tried: readonly (readonly SpecChange[])[];
  readonly notes: readonly DiagnosisNote[];
}

const camelCased = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(camelCased);
  if (typeof value !== 'object' || value === null) return value === null ? undefined : value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [
      key.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase()),
      camelCased(inner),
    ]),
  );
};

function readJson(ports: Ports, path: string): Record<string, unknown> | undefined {
  const read = ports.files.readText(path);
  if (!read.ok) return undefined;
  try {
    return JSON.parse(read.value) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}

const noRun = (message: string): Result<never> =>
  fail(
    error('no-run', message, {
      help: 'give a log: snug diagnose train.log, or a run folder: --run .snug/runs/NAME',
    }) satisfies Diagnostic,
  );

/** The newest run folder below the working directory; names begin with the time. */
export function newestRun(ports: Ports): string | undefined {
  const root = join(ports.cwd, '.snug', 'runs');
  const name = ports.files.list(root).findLast((one) => ports.files.info(join(root, one, 'run.json')));
  return name === undefined ? undefined : join('.snug', 'runs', name);
}

function endText(outcome: Record<string, unknown>): string {
  const { exit_code: code, signal } = outcome;
  return typeof signal === 'string' ? signal : typeof code === 'number' ? `exit code ${code}` : 'no exit code';
}

/** Reads the last attempt of a run: what it was asked for, how it ended, what was sampled, and where its output is. */
export function readRun(ports: Ports, folder: string): Result<RunEvidence> {
  const path = isAbsolute(folder) ? folder : join(ports.cwd, folder);
  if (!readJson(ports, join(path, 'run.json'))) return noRun(`${folder} is no run folder of snug: it has no run.json`);
  const attempts = ports.files
    .list(join(path, 'attempts'))
    .filter((name) => /^\d+$/.test(name))
    .sort((left, right) => Number(left) - Number(right));
  const last = attempts.at(-1);
  if (last === undefined) return noRun(`${folder} holds no attempt: nothing was started`);
  const attempt = join(path, 'attempts', last);
  const outcome = readJson(ports, join(attempt, 'outcome.json'));
  const record = readContinueRecord(ports, path);
  const seen = outcome?.evidence;
  const evidence = typeof seen === 'object' && seen !== null ? (camelCased(seen) as Evidence) : undefined;
  const peak = evidence?.peakRamBytes ?? 0;
  return ok({
    folder,
    evidence,
    logPath: join(attempt, 'output.log'),
    request: record?.cwd === ports.cwd ? { ...record.request, starts: false } : undefined,
    tried: record?.attempts.map(({ changes }) => changes) ?? [],
    notes: [
      ...(outcome ? [{ id: 'run-ended' as const, values: { folder, attempt: last, end: endText(outcome) } }] : []),
      ...(peak > 0 ? [{ id: 'peak-ram' as const, values: { size: formatBytes(peak) } }] : []),
    ],
  });
}
