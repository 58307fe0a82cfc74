import { existsSync } from 'node:fs';
import { cardSpeed, stepSeconds, workloadOf } from '../src/planner/cost/index.ts';
import { groupBy } from './error-table.ts';
import { factsOf } from './measured-models.ts';
import { type MeasuredRow, planOfMeasured, readMeasuredRows } from './measured-rows.ts';

interface Timed {
  readonly row: MeasuredRow;
  /** Tokens a second of one GPU. */
  readonly measured: number;
  readonly predicted: number;
}

function timed(row: MeasuredRow): Timed[] {
  const measured = (row as { readonly alt_metrics?: { readonly tokens_per_s_per_gpu?: number } }).alt_metrics
    ?.tokens_per_s_per_gpu;
  const plan = planOfMeasured(row);
  const facts = factsOf(row.model, row.source);
  if (!measured || typeof plan === 'string' || typeof facts === 'string') return [];
  const { values } = plan;
  const tokens = values.perDeviceTrainBatchSize * values.gradientAccumulationSteps * values.maxLength;
  const seconds = stepSeconds(values, workloadOf(facts), cardSpeed(plan.device?.computeCapability));
  return [{ row, measured, predicted: tokens / seconds }];
}

const median = (sorted: readonly number[], share: number): string =>
  `${sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!.toFixed(2)}`;

/**
 * Ratios of step times, predicted against measured: every pair of published runs of one model on as many GPUs that differ by 10 % or
 * more in tokens a second. Argument: [measured.jsonl].
 */
export function main(argv: readonly string[]): number {
  const path = argv.find((argument) => argument.endsWith('.jsonl')) ?? '../shared/measured/measured.jsonl';
  if (!existsSync(path)) {
    console.error(`no measured rows at ${path}; give the path`);
    return 2;
  }
  const runs = [
    ...new Map(readMeasuredRows(path).map((row) => [row.id.replace(/-(alloc|nvsmi)$/, ''), row])).values(),
  ].flatMap(timed);
  console.log(
    'model and GPUs                                 runs  pairs  same order  ratio of ratios: p10, median, p90',
  );
  const all: number[] = [];
  let agree = 0;
  for (const [name, group] of groupBy(runs, ({ row }) => `${row.model} x ${row.extras?.world_size ?? 1}`)) {
    const ratios: number[] = [];
    let same = 0;
    for (const [index, a] of group.entries()) {
      for (const b of group.slice(index + 1)) {
        const [measured, predicted] = [a.measured / b.measured, a.predicted / b.predicted];
        if (Math.abs(Math.log(measured)) < Math.log(1.1)) continue;
        if (argv.includes('--pairs')) console.log(measured.toFixed(2), predicted.toFixed(2), a.row.id, b.row.id);
        // Of a pair the larger stands above, so that 1.2 means the prediction makes too much of a difference.
        ratios.push(measured > 1 ? predicted / measured : measured / predicted);
        if (measured > 1 === predicted > 1) same += 1;
      }
    }
    if (ratios.length === 0) continue;
    all.push(...ratios);
    agree += same;
    const sorted = [...ratios].sort((a, b) => a - b);
    console.log(
      `${name.padEnd(46)} ${String(group.length).padStart(4)} ${String(ratios.length).padStart(6)} ${`${Math.round((100 * same) / ratios.length)} %`.padStart(11)}   ${median(sorted, 0.1)} ${median(sorted, 0.5)} ${median(sorted, 0.9)}`,
    );
  }
  const sorted = all.sort((a, b) => a - b);
  console.log(
    `${'all'.padEnd(46)} ${String(runs.length).padStart(4)} ${String(all.length).padStart(6)} ${`${Math.round((100 * agree) / all.length)} %`.padStart(11)}   ${median(sorted, 0.1)} ${median(sorted, 0.5)} ${median(sorted, 0.9)}`,
  );
  if (argv.includes('--runs')) {
    for (const { row, measured, predicted } of runs)
      console.log(`${(predicted / measured).toFixed(2)}  ${Math.round(measured)} ${Math.round(predicted)}  ${row.id}`);
  }
  return 0;
}
