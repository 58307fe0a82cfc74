import type { CleanLine } from './normalise.ts';

/** Bars that fill while a run is still getting ready: their movement says nothing of training. */
const PREPARING =
  /load|shard|map\b|map \(|tokeniz|download|fetch|generat|filter|pack|sav|eval|writ|prepar|build|merg|quantiz|capturing/i;
const LOSS = /['"]?(?:train_?)?loss['"]?\s*[:=]\s*['"]?-?\d/i;
const TRAINING_BEGINS = /\*{3,} ?Running training ?\*{3,}/;
/** Transformers' last words, Lightning's, fairseq's, and what scripts commonly say. */
const TRAINING_ENDS =
  /['"]train_runtime['"]?\s*:|\*{3,} ?train metrics ?\*{3,}|^Training (?:is )?(?:completed?|finished|done)\b|`Trainer\.fit` stopped: `max_\w+=\d+` reached|\bdone training in \d/i;

/** Counts steps of training made so far; used to tell an OOM that a trainer survived from one that ended it. */
export interface ProgressReader {
  readonly take: (line: CleanLine) => void;
  /** Grows by one with each step seen. Two more than at an error mean that training went on after it. */
  readonly advances: () => number;
  /** Highest step a training bar has shown. */
  readonly steps: () => number;
  /** How many it is going to make, as that bar says; undefined: no bar has said. */
  readonly planned: () => number | undefined;
  /** A trainer has said that it is done. */
  readonly finished: () => boolean;
}

export function createProgressReader(): ProgressReader {
  const done = new Map<string, number>();
  let advances = 0;
  let steps = 0;
  let planned: number | undefined;
  let finished = false;
  let lastLoss = '';
  return {
    take(line) {
      if (line.bar && line.bar.total > 1 && !PREPARING.test(line.bar.label)) {
        const key = `${line.bar.label}/${line.bar.total}`;
        const before = done.get(key);
        if (before !== undefined && line.bar.done > before) advances++;
        if (line.bar.done >= steps) planned = line.bar.total;
        steps = Math.max(steps, line.bar.done);
        if (done.size < 64 || before !== undefined) done.set(key, line.bar.done);
      }
      if (LOSS.test(line.text) && line.text !== lastLoss) {
        lastLoss = line.text;
        advances++;
      }
      // A new start inside the same process: an in-process batch search has caught the error and begun again.
      if (TRAINING_BEGINS.test(line.text)) {
        advances += 2;
        finished = false;
      }
      if (TRAINING_ENDS.test(line.text)) {
        advances += 2;
        finished = true;
      }
    },
    advances: () => advances,
    steps: () => steps,
    planned: () => planned,
    finished: () => finished,
  };
}
