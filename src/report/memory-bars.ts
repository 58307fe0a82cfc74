import { formatBytes, GiB, MiB } from '../core/index.ts';
import { type MemoryBudget, type MemoryEstimate, TERM_NAMES, type TermName } from '../memory/index.ts';
import { settingKey } from '../spec/index.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { wrap } from './wrap.ts';

/** A term for people: `optimizer states`, `CUDA context`. */
export const termText = (name: string): string =>
  settingKey(name)
    .replaceAll('_', ' ')
    .replace(/^cuda\b/, 'CUDA');

const COLOURS: Readonly<Record<TermName, Parameters<typeof paint>[1]>> = {
  weights: 'blue',
  gradients: 'magenta',
  optimizerStates: 'yellow',
  activations: 'green',
  logits: 'cyan',
  temporaryBuffers: 'white',
  communicationBuffers: 'white',
  inferenceEngine: 'magenta',
  fragmentation: 'gray',
  cudaContext: 'gray',
};

const LABEL = 23;
const SIZE = 10;
/** The margin, the gap before the bars, and the column of the card's end behind them. */
const AROUND = 4;
/** What a term must be to get a line of its own. */
const SMALLEST = 8 * MiB;

interface Scale {
  readonly columns: number;
  readonly columnOf: (bytes: number) => number;
  /** Column of the card's end; undefined: the card is not known. */
  readonly card: number | undefined;
}

function scaleOf(peak: number, budget: MemoryBudget | undefined, options: TextOptions): Scale {
  const columns = Math.max(20, Math.min(options.width, 100) - LABEL - SIZE - AROUND);
  const free = budget ? budget.capacityBytes - budget.usedByOthersBytes : undefined;
  const longest = Math.max(peak, free ?? 0, 1);
  const columnOf = (bytes: number): number => Math.min(columns, Math.round((bytes / longest) * columns));
  return { columns, columnOf, card: free === undefined ? undefined : columnOf(free) };
}

/** One row of the stair: empty up to where the terms before it end, then this term; the card's end is marked on the way. */
function bar(from: number, to: number, scale: Scale, options: TextOptions): string {
  const [solid, sliver, mark] = options.unicode === false ? ['#', ':', '|'] : ['█', '▏', '┊'];
  const start = Math.min(scale.columnOf(from), scale.columns - 1);
  const end = scale.columnOf(to);
  const cells = Array.from({ length: scale.columns + 1 }, (_, column) => {
    if (column >= start && column < end) return solid;
    if (column === start && start >= end) return sliver;
    return column === scale.card ? mark : ' ';
  });
  return cells.join('').trimEnd();
}

/** The whole peak; what lies beyond the card stands out. */
function totalBar(bytes: number, scale: Scale, options: TextOptions): string {
  const drawn = bar(0, bytes, scale, options);
  const { card } = scale;
  if (card === undefined || scale.columnOf(bytes) <= card) return paint(options, 'bold', drawn);
  return paint(options, 'bold', drawn.slice(0, card)) + paint(options, ['bold', 'red'], drawn.slice(card));
}

const row = (label: string, bytes: number, drawn: string): string =>
  `  ${label.padEnd(LABEL)}${formatBytes(bytes).padStart(SIZE)} ${drawn}`.trimEnd();

const inGiB = (bytes: number): string => (bytes / GiB).toFixed(1);

/** `allocated 15.6, reserved 16.4, device 17.2 GiB (16.8 to 18.0)`: three peaks, never mixed up. */
export const peaksText = ({ vram }: MemoryEstimate): string =>
  `allocated ${inGiB(vram.allocatedPeakBytes)}, reserved ${inGiB(vram.reservedPeakBytes)}, device ${inGiB(vram.devicePeakBytes)} GiB (${inGiB(vram.lowBytes)} to ${inGiB(vram.highBytes)})`;

/** The peak of one GPU as a stair of its terms, the card's end marked, then the three peaks. */
export function renderMemoryBars(
  estimate: MemoryEstimate,
  budget: MemoryBudget | undefined,
  options: TextOptions,
): readonly string[] {
  const { vram } = estimate;
  const scale = scaleOf(vram.devicePeakBytes, budget, options);
  const shown = TERM_NAMES.filter((name) => vram.terms[name] >= SMALLEST);
  const small = vram.devicePeakBytes - shown.reduce((sum, name) => sum + vram.terms[name], 0);
  let reached = 0;
  const stair = (label: string, bytes: number, colour: Parameters<typeof paint>[1]): string => {
    const drawn = bar(reached, reached + bytes, scale, options);
    reached += bytes;
    return row(label, bytes, paint(options, colour, drawn));
  };
  const lines = [
    ...shown.map((name) => stair(termText(name), vram.terms[name], COLOURS[name])),
    ...(small > 0 ? [stair('everything else', small, 'gray')] : []),
  ];
  const total = row('device peak', vram.devicePeakBytes, totalBar(vram.devicePeakBytes, scale, options));
  return [
    ...lines,
    total,
    ...(budget && scale.card !== undefined ? [cardLine(budget, scale, options)] : []),
    wrap(`  ${peaksText(estimate)}`, options.width, 4),
  ].map((line) => plainSigns(options, line));
}

/** The mark under the stair, with the card's size beside it. */
function cardLine(budget: MemoryBudget, scale: Scale, options: TextOptions): string {
  const free = budget.capacityBytes - budget.usedByOthersBytes;
  const text = `${formatBytes(free)} free on the card`;
  const column = LABEL + SIZE + 3 + scale.card!;
  const mark = options.unicode === false ? '^' : '╵';
  return column + 2 + text.length <= options.width
    ? `${' '.repeat(column)}${mark} ${text}`
    : `${' '.repeat(Math.max(2, column - text.length - 1))}${text} ${mark}`;
}
