import { existsSync } from 'node:fs';
import { errorHead, errorLine, groupBy, percent } from './error-table.ts';
import { estimateOf, type ReferenceRow, readReferenceRows } from './reference-rows.ts';

interface Outcome {
  readonly row: ReferenceRow;
  /** estimate ÷ peak − 1; undefined: refused. */
  readonly error: number | undefined;
  readonly refusal: string | undefined;
  readonly parametersExact: boolean;
  readonly trainableExact: boolean;
  readonly phase: string;
}

function evaluate(row: ReferenceRow): Outcome {
  const estimate = estimateOf(row);
  if (!estimate.ok) return refused(row, estimate.error[0]!.message);
  return {
    row,
    error: estimate.value.vram.allocatedPeakBytes / row.peak_bytes - 1,
    refusal: undefined,
    parametersExact: estimate.value.params.total === row.params,
    trainableExact: estimate.value.params.trainable === row.trainable,
    phase: estimate.value.vram.peakPhase,
  };
}

const refused = (row: ReferenceRow, refusal: string): Outcome => ({
  row,
  error: undefined,
  refusal,
  parametersExact: false,
  trainableExact: false,
  phase: '-',
});

function summarise(name: string, outcomes: readonly Outcome[]): string {
  const errors = outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
  return errorLine(name, errors, outcomes.length - errors.length);
}

const group = (outcomes: readonly Outcome[], by: (row: ReferenceRow) => string): string[] =>
  [...groupBy(outcomes, ({ row }) => by(row))].map(([name, members]) => summarise(name, members));

/** Prints how far the estimator is from traced peaks. Arguments: [peaks.jsonl] [--worst N]. */
export function main(argv: readonly string[]): number {
  const path = argv.find((argument) => argument.endsWith('.jsonl')) ?? '../shared/reference/peaks.jsonl';
  if (!existsSync(path)) {
    console.error(`no reference file at ${path}; give its path`);
    return 2;
  }
  const rows = readReferenceRows(path);
  const outcomes = rows.map(evaluate);
  console.log(errorHead());
  for (const line of group(outcomes, (row) => row.arch ?? String(row.config.model_type))) console.log(line);
  console.log('');
  for (const line of group(outcomes, (row) => row.peft ?? row.method)) console.log(line);
  console.log('');
  for (const line of group(outcomes, (row) => `checkpointing ${row.ckpt ? 'on' : 'off'}`)) console.log(line);
  console.log('');
  console.log(summarise('all', outcomes));
  const known = outcomes.filter(({ error }) => error !== undefined);
  console.log(
    `parameters exact ${known.filter((o) => o.parametersExact).length}/${known.length}, trainable exact ${
      known.filter((o) => o.trainableExact).length
    }/${known.length}`,
  );
  const worstFlag = argv.indexOf('--worst');
  const worst = worstFlag < 0 ? 0 : Number(argv[worstFlag + 1] ?? 10);
  const sorted = [...known].sort((a, b) => Math.abs(b.error!) - Math.abs(a.error!));
  for (const { row, error, phase } of sorted.slice(0, worst)) {
    console.log(`${percent(error!)} ${row.id} ${row.peft ?? row.method} ${row.peak_phase}/${phase}`);
  }
  for (const refusal of new Set(outcomes.flatMap((outcome) => outcome.refusal ?? [])))
    console.log(`refused: ${refusal}`);
  const start = performance.now();
  let runs = 0;
  while (performance.now() - start < 1500) {
    for (const row of rows) evaluate(row);
    runs += rows.length;
  }
  console.log(`${Math.round(runs / ((performance.now() - start) / 1000))} estimates/s, model description included`);
  return 0;
}
