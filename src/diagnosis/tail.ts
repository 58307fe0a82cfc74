import type { CleanLine } from './normalise.ts';

const LINES_PER_SOURCE = 40;
const MOST_SOURCES = 64;
const MOST_CHARS = 2000;

/** Keeps the last lines of each rank and stream. Refreshes of one progress bar count as one line. */
export interface TailKeeper {
  readonly take: (source: string, line: CleanLine) => void;
  /** In the order they came. */
  readonly lines: () => readonly string[];
}

export function createTailKeeper(): TailKeeper {
  interface Kept {
    readonly order: number;
    readonly text: string;
    readonly bar: boolean;
  }
  const sources = new Map<string, Kept[]>();
  let order = 0;
  return {
    take(source, line) {
      const shown = line.shown.trimEnd();
      if (shown === '') return;
      const kept = sources.get(source) ?? [];
      if (kept.length === 0 && sources.size >= MOST_SOURCES) return;
      sources.set(source, kept);
      const bar = line.bar !== undefined && line.text === '';
      if (bar && kept.at(-1)?.bar) kept.pop();
      kept.push({ order: order++, text: shown.slice(0, MOST_CHARS), bar });
      if (kept.length > LINES_PER_SOURCE) kept.shift();
    },
    lines: () =>
      [...sources.values()]
        .flat()
        .sort((left, right) => left.order - right.order)
        .map((kept) => kept.text),
  };
}
