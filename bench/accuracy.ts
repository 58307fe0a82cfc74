import { existsSync } from 'node:fs';
import { estimateMemory } from '../src/memory/index.ts';
import { describeModel } from '../src/model/index.ts';
import { planOf, type ReferenceRow, readReferenceRows } from './reference-rows.ts';

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
  const facts = describeModel(row.config);
  if (!facts.ok) return refused(row, facts.error[0]!.message);
  const estimate = estimateMemory(planOf(row), facts.value);
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

const percent = (value: number): string => `${(value * 100).toFixed(2)} %`.padStart(9);

function summarise(name: string, outcomes: readonly Outcome[]): string {
  const errors = outcomes.flatMap(({ error }) => (error === undefined ? [] : [error]));
  const refusals = outcomes.length - errors.length;
  if (errors.length === 0) return `${name.padEnd(22)} ${String(outcomes.length).padStart(4)}  all refused`;
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const at = (share: number): number => sizes[Math.min(sizes.length - 1, Math.ceil(share * sizes.length) - 1)]!;
  const mean = sizes.reduce((total, size) => total + size, 0) / sizes.length;
  const under = errors.filter((error) => error < -0.03).length / errors.length;
  return [
    name.padEnd(22),
    String(outcomes.length).padStart(4),
    percent(at(0.5)),
    percent(mean),
    percent(at(0.95)),
    percent(sizes[sizes.length - 1]!),
    percent(under),
    String(refusals).padStart(7),
  ].join(' ');
}

function group(outcomes: readonly Outcome[], by: (row: ReferenceRow) => string): string[] {
  const groups = new Map<string, Outcome[]>();
  for (const outcome of outcomes) {
    const key = by(outcome.row);
    groups.set(key, [...(groups.get(key) ?? []), outcome]);
  }
  return [...groups].map(([name, members]) => summarise(name, members));
}

/** Prints how far the estimator is from traced peaks. Arguments: [peaks.jsonl] [--worst N]. */
export function main(argv: readonly string[]): number {
  const path = argv.find((argument) => argument.endsWith('.jsonl')) ?? '../shared/reference/peaks.jsonl';
  if (!existsSync(path)) {
    console.error(`no reference file at ${path}; give its path`);
    return 2;
  }
  const rows = readReferenceRows(path);
  const outcomes = rows.map(evaluate);
  console.log('                          n    median      mean       p95       max   under>3 refused');
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
