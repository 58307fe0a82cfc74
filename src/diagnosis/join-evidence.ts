import type { Evidence } from './evidence.ts';
import type { EvidenceLine } from './failure.ts';

/** One file's part of a run. */
export interface EvidencePart {
  /** As the file was named. */
  readonly source: string;
  /** Rank that the file's name tells; undefined: it tells none. */
  readonly rank: number | undefined;
  readonly evidence: Evidence;
}

/** Without times nothing tells whether a timeout came before or after another rank's failure; the failure explains more. */
const EXPLAINS_LESS: ReadonlySet<string> = new Set(['collective-timeout', 'echo']);

function inOrder(lines: readonly EvidenceLine[]): readonly EvidenceLine[] {
  if (lines.every((line) => line.timeMs !== undefined))
    return [...lines].sort((left, right) => left.timeMs! - right.timeMs!);
  const late = (line: EvidenceLine): number => (EXPLAINS_LESS.has(line.signature ?? '') ? 1 : 0);
  return [...lines].sort((left, right) => late(left) - late(right));
}

/** Evidence of one run out of a file for each rank or stream: by time where every line has one, else by what explains most. */
export function joinEvidence(parts: readonly EvidencePart[]): Evidence {
  const [first] = parts;
  if (!first) throw new Error('joinEvidence was given nothing to join');
  const lines = parts.flatMap(({ source, rank, evidence }) =>
    evidence.lines.map((line) => ({ ...line, source, rank: line.rank ?? rank })),
  );
  return {
    ...first.evidence,
    lines: parts.length === 1 ? lines : inOrder(lines),
    tail: parts.flatMap(({ evidence }) => evidence.tail),
    ...(parts.every(({ evidence }) => evidence.finished) ? { finished: true } : { finished: false }),
  };
}
