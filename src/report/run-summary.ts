import { formatBytes } from '../core/index.ts';
import type { Failure } from '../diagnosis/index.ts';
import type { Distributed, SpecChange } from '../spec/index.ts';
import { groupByLever, movesText } from './change-text.ts';
import { formatDuration } from './duration.ts';
import { failureShort } from './failure-text.ts';
import type { AttemptEnd } from './run-event.ts';
import { endText, prefixed } from './run-text.ts';
import { paint, type TextOptions } from './text-options.ts';

/** One attempt as it is told at the end. */
export interface AttemptSummary {
  readonly attempt: number;
  readonly durationMs: number;
  readonly end: AttemptEnd;
  /** undefined: it ended well. */
  readonly failure: Failure | undefined;
  /** From the launch as it came. */
  readonly changes: readonly SpecChange[];
  readonly distributed: Distributed | undefined;
  /** Device peak, bytes; undefined: nothing was predicted. */
  readonly predictedBytes: number | undefined;
  /** Highest device memory seen on one GPU, bytes; undefined: no driver. */
  readonly peakVramBytes: number | undefined;
  /** Step it went on from; undefined: from the start. */
  readonly fromStep: number | undefined;
}

export interface RunSummary {
  readonly attempts: readonly AttemptSummary[];
  readonly runFolder: string;
  readonly exit: {
    readonly code: number;
    /** Whether the code is the trainer's, passed through, or one of snug's. */
    readonly whose: 'trainer' | 'snug';
    /** What a code of snug's means, one clause. */
    readonly meaning?: string;
  };
}

const HEADS = ['attempt', 'predicted', 'seen', 'time', 'from', 'ended'] as const;
const bytesText = (bytes: number | undefined): string => (bytes === undefined ? '-' : formatBytes(bytes));

const cells = (summary: AttemptSummary): readonly string[] => [
  String(summary.attempt),
  bytesText(summary.predictedBytes),
  bytesText(summary.peakVramBytes),
  formatDuration(summary.durationMs),
  summary.fromStep === undefined ? 'start' : `step ${summary.fromStep}`,
  summary.failure ? failureShort(summary.failure) : endText(summary.end),
];

function table(attempts: readonly AttemptSummary[]): readonly string[] {
  const rows = [HEADS, ...attempts.map(cells)];
  const widths = HEADS.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const drawn = rows.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column]!))
      .join('  ')
      .trimEnd(),
  );
  return drawn.flatMap((line, index) => {
    const summary = attempts[index - 1];
    const moves = summary
      ? groupByLever(summary.changes).map((group) => `  ${movesText(group, summary.distributed)}`)
      : [];
    return [line, ...moves];
  });
}

/** `exit code 13, snug's own: still out of VRAM after the last retry`. */
export const exitText = ({ exit }: Pick<RunSummary, 'exit'>): string =>
  exit.whose === 'trainer'
    ? `exit code ${exit.code}, the trainer's own`
    : `exit code ${exit.code}, snug's own${exit.meaning ? `: ${exit.meaning}` : ''}`;

/** What happened in every attempt, where it is kept, and last whose exit code this is. One attempt needs no table. */
export function renderRunSummary(summary: RunSummary, options: TextOptions): string {
  const rows = summary.attempts.length > 1 ? table(summary.attempts) : [];
  const lines = [...rows, `kept in ${summary.runFolder}`, exitText(summary)];
  return prefixed(rows.length > 0 ? [paint(options, 'bold', lines[0]!), ...lines.slice(1)] : lines, options);
}
