import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { type ReserveOfStep, reservedByStep } from '../src/memory/allocator/of-step.ts';
import { simulatedReserve } from '../src/memory/allocator/oracle.ts';
import { estimateMemory, type MemoryEstimate } from '../src/memory/index.ts';
import { groupBy } from './error-table.ts';
import { factsOf } from './measured-models.ts';
import { type MeasuredRow, planOfMeasured, readMeasuredRows, sourceOf } from './measured-rows.ts';

const GIB = 2 ** 30;

interface Score {
  readonly row: MeasuredRow;
  /** estimate ÷ measured − 1, the same counter on both sides; undefined: refused or no known counter. */
  readonly error: number | undefined;
  readonly refusal: string | undefined;
  readonly inside: boolean | undefined;
  readonly estimate: MemoryEstimate | undefined;
  /** (high − low) ÷ middle. */
  readonly width: number | undefined;
}

function score(row: MeasuredRow, reserveOf: ReserveOfStep = reservedByStep): Score {
  const refused = (refusal: string): Score => ({
    row,
    error: undefined,
    refusal,
    inside: undefined,
    estimate: undefined,
    width: undefined,
  });
  const plan = planOfMeasured(row);
  if (typeof plan === 'string') return refused(plan);
  const facts = factsOf(row.model, row.source);
  if (typeof facts === 'string') return refused(facts);
  const result = estimateMemory(plan.values, facts, plan.device, reserveOf);
  if (!result.ok) return refused(result.error[0]!.message);
  const { vram } = result.value;
  const measured = row.peak_gib * GIB;
  // Near the size of the card the allocator flushes its cache: no reading can be above it.
  const limit = (row.gpu_total_gib ?? Number.POSITIVE_INFINITY) * GIB;
  if (row.peak_metric === 'unknown') {
    const inside = measured >= vram.allocatedPeakBytes * 0.95 && measured <= vram.devicePeakBytes * 1.05;
    const near = Math.min(Math.max(measured, vram.allocatedPeakBytes), vram.devicePeakBytes);
    return { row, error: near / measured - 1, refusal: undefined, inside, estimate: result.value, width: undefined };
  }
  const [predicted, low, high] = intervalOf(result.value, row);
  const bytes = Math.min(predicted, Math.max(vram.allocatedPeakBytes, limit));
  return {
    row,
    error: bytes / measured - 1,
    refusal: undefined,
    inside: measured >= low && measured <= high,
    estimate: result.value,
    width: (high - low) / ((high + low) / 2),
  };
}

/** Estimate and interval of the row's own counter. */
function intervalOf({ vram }: MemoryEstimate, row: MeasuredRow): readonly [number, number, number] {
  switch (row.peak_metric) {
    case 'allocated':
      return [vram.allocatedPeakBytes, vram.intervals!.allocated.lowBytes, vram.intervals!.allocated.highBytes];
    case 'reserved':
      return [vram.reservedPeakBytes, vram.intervals!.reserved.lowBytes, vram.intervals!.reserved.highBytes];
    default:
      return [vram.devicePeakBytes, vram.lowBytes, vram.highBytes];
  }
}

const percent = (value: number): string => `${(value * 100).toFixed(1)} %`.padStart(8);

/** One line: errors, how often under, intervals held, and row × card pairs that the estimate sorts wrongly. */
function summarise(name: string, scores: readonly Score[]): string {
  const errors = scores.flatMap(({ error }) => (error === undefined ? [] : [error]));
  const head = `${name.padEnd(44)} ${String(scores.length).padStart(4)} ${String(scores.length - errors.length).padStart(4)}`;
  if (errors.length === 0) return head;
  const sizes = errors.map(Math.abs).sort((a, b) => a - b);
  const at = (share: number): number => sizes[Math.min(sizes.length - 1, Math.ceil(share * sizes.length) - 1)]!;
  const under = (by: number): number => errors.filter((error) => error < -by).length / errors.length;
  const { pairs, falseFits, falseRefusals } = CARDS.map((card) => againstCard(scores, card)).reduce(sumOfPairs);
  return [
    head,
    percent(at(0.5)),
    percent(sizes.reduce((total, size) => total + size, 0) / sizes.length),
    percent(at(0.95)),
    percent(sizes.at(-1)!),
    percent(under(0.03)),
    percent(under(0.05)),
    percent(scores.filter((s) => s.inside).length / errors.length),
    String(pairs).padStart(5),
    pairs > 0 ? percent(falseFits / pairs) : '',
    pairs > 0 ? percent(falseRefusals / pairs) : '',
  ].join(' ');
}

const HEAD = `${''.padEnd(44)}    n  out   median     mean      p95      max  under>3  under>5   inside pairs     fits refusals`;

const grouped = (scores: readonly Score[], by: (row: MeasuredRow) => string): string[] =>
  [...groupBy(scores, ({ row }) => by(row))].map(([name, members]) => summarise(name, members));

/** Architecture of a row's model, as its config names it. */
function familyOf(row: MeasuredRow): string {
  const facts = factsOf(row.model, row.source);
  return typeof facts === 'string' ? 'no config at hand' : facts.modelType;
}

/** Error against published GPU measurements. Arguments: [measured.jsonl] [--rows PATTERN] [--worst N]. */
export function main(argv: readonly string[]): number {
  const path = argv.find((argument) => argument.endsWith('.jsonl')) ?? '../shared/measured/measured.jsonl';
  if (!existsSync(path)) {
    console.error(`no measured file at ${path}; give its path`);
    return 2;
  }
  const list = join(dirname(path), 'recommended.txt');
  const recommended = new Set(existsSync(list) ? readFileSync(list, 'utf8').split(/\s+/).filter(Boolean) : []);
  const rows = readMeasuredRows(path);
  const scores = rows.map((row) => score(row));
  const pattern = argument(argv, '--rows');
  if (pattern !== undefined) {
    for (const entry of scores.filter(({ row }) => new RegExp(pattern).test(row.id))) console.log(detail(entry));
    return 0;
  }
  console.log(HEAD);
  for (const line of grouped(scores, (row) => `${sourceOf(row)} ${row.peak_metric}`)) console.log(line);
  console.log('');
  for (const line of grouped(scores, (row) => row.peak_metric)) console.log(line);
  console.log('');
  const played = rows.map((row) => score(row, simulatedReserve)).filter(({ row }) => row.peak_metric !== 'allocated');
  for (const line of grouped(played, (row) => `${row.peak_metric}, each layer played`)) console.log(line);
  console.log('');
  const counted = scores.filter(({ row }) => row.peak_metric !== 'unknown');
  for (const line of grouped(counted, (row) => row.method)) console.log(line);
  console.log('');
  for (const line of grouped(counted, familyOf)) console.log(line);
  console.log('');
  const best = scores.filter(({ row }) => recommended.has(row.id));
  if (best.length > 0) {
    console.log(summarise('recommended rows', best));
    for (const entry of best.sort((a, b) => Math.abs(b.error ?? 9) - Math.abs(a.error ?? 9)))
      console.log(detail(entry));
    console.log('');
  }
  for (const line of byCard(scores)) console.log(line);
  console.log('');
  const widths = counted.flatMap(({ width }) => (width === undefined ? [] : [width]));
  const wide = widths.filter((width) => width > 0.25).length / widths.length;
  console.log(
    `intervals wider than a quarter of their middle:${percent(wide)}, the widest${percent(Math.max(...widths))}`,
  );
  console.log('');
  const reasons = new Map<string, number>();
  for (const { refusal } of scores) if (refusal) reasons.set(refusal, (reasons.get(refusal) ?? 0) + 1);
  for (const [reason, count] of [...reasons].sort((a, b) => b[1] - a[1])) console.log(`left out ${count}: ${reason}`);
  return 0;
}

/** Usable GiB of common cards (torch's total_memory). */
const CARDS = [7.6, 11.6, 15.6, 23.6, 39.5, 47.4, 79.2];

interface Pairs {
  readonly pairs: number;
  readonly falseFits: number;
  readonly falseRefusals: number;
}

/**
 * Rows whose measured peak lies within a quarter of the card: does the estimate of the same counter say the same? Context and
 * reserve allowance would be added alike on both sides and are left out.
 */
function againstCard(scores: readonly Score[], card: number): Pairs {
  const near = scores.filter(
    ({ row, error }) =>
      error !== undefined && row.peak_metric !== 'unknown' && Math.abs(row.peak_gib / card - 1) <= 0.25,
  );
  const estimated = ({ row, error }: Score): number => row.peak_gib * (1 + error!);
  return {
    pairs: near.length,
    falseFits: near.filter((score) => score.row.peak_gib > card && estimated(score) <= card).length,
    falseRefusals: near.filter((score) => score.row.peak_gib <= card && estimated(score) > card).length,
  };
}

const sumOfPairs = (a: Pairs, b: Pairs): Pairs => ({
  pairs: a.pairs + b.pairs,
  falseFits: a.falseFits + b.falseFits,
  falseRefusals: a.falseRefusals + b.falseRefusals,
});

function byCard(scores: readonly Score[]): string[] {
  const rows = CARDS.map((card) => againstCard(scores, card));
  const line = (name: string, { pairs, falseFits, falseRefusals }: Pairs): string =>
    [
      name.padStart(8),
      String(pairs).padStart(7),
      percent(falseFits / Math.max(1, pairs)).padStart(12),
      percent(falseRefusals / Math.max(1, pairs)).padStart(16),
    ].join(' ');
  return [
    'card GiB   pairs   false fits   false refusals',
    ...rows.map((pairs, index) => line(String(CARDS[index]), pairs)),
    line('all', rows.reduce(sumOfPairs)),
  ];
}

const gib = (bytes: number): string => (bytes / GIB).toFixed(2).padStart(7);

function detail({ row, error, estimate, refusal, inside }: Score): string {
  if (!estimate) return `  ${'refused'.padStart(8)} ${row.id}: ${refusal}`;
  const { vram } = estimate;
  const terms = Object.entries(vram.terms)
    .filter(([, bytes]) => bytes > 0.05 * GIB)
    .map(([name, bytes]) => `${name} ${(bytes / GIB).toFixed(1)}`);
  return [
    `  ${percent(error ?? 0)} ${inside ? ' ' : '!'} ${row.id.padEnd(70)} ${row.peak_metric.padEnd(10)}`,
    row.peak_gib.toFixed(2).padStart(7),
    `a${gib(vram.allocatedPeakBytes)} r${gib(vram.reservedPeakBytes)} d${gib(vram.devicePeakBytes)}`,
    vram.peakPhase,
    terms.join(', '),
  ].join(' ');
}

function argument(argv: readonly string[], flag: string): string | undefined {
  const index = argv.indexOf(flag);
  return index < 0 ? undefined : argv[index + 1];
}
