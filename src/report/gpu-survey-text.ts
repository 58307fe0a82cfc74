import Table from 'cli-table3';
import { formatBytes } from '../core/index.ts';
import { understood } from './check-text.ts';
import { type GpuFit, type GpuSurvey, hostRamToRent, howText } from './gpu-survey.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { wrap } from './wrap.ts';

export interface GpuSurveyOptions extends TextOptions {
  /** Say what host RAM to rent with each card. */
  readonly ram: boolean;
}

const neededBytes = ({ plan }: GpuFit): number =>
  (plan.verdict === 'refuse' ? plan.refusal.smallest.estimate : plan.estimate).vram.devicePeakBytes;

/** The others, by name; the smallest plan may need a little more on one generation than on another. */
function refusedText(fits: readonly GpuFit[], options: TextOptions): string[] {
  const refused = fits.filter(({ plan }) => plan.verdict === 'refuse');
  if (refused.length === 0) return [];
  const least = Math.min(...refused.map(neededBytes));
  const names = refused.map(({ gpu }) => gpu).join(', ');
  return ['', wrap(`does not fit on (the smallest plan needs ${formatBytes(least)}): ${names}`, options.width, 2)];
}

const NO_LINES = Object.fromEntries(
  'top,top-mid,top-left,top-right,bottom,bottom-mid,bottom-left,bottom-right,left,left-mid,mid,mid-mid,right,right-mid'
    .split(',')
    .map((name) => [name, '']),
);

/** `snug gpus`: one line a card. */
export function renderGpuSurvey({ report, fits }: GpuSurvey, options: GpuSurveyOptions): string {
  const head = ['card', 'memory', 'cards', 'needs', ...(options.ram ? ['RAM'] : []), 'how'];
  const fitting = fits.filter(({ plan }) => plan.verdict !== 'refuse');
  const rows = fitting.map((fit) => [
    fit.gpu,
    formatBytes(fit.totalBytes),
    String(fit.count),
    formatBytes(neededBytes(fit)),
    ...(options.ram ? [`${hostRamToRent(fit.hostRamBytes)} GB`] : []),
    howText(fit),
  ]);
  const widths = head
    .slice(0, -1)
    .map((title, column) => 2 + Math.max(title.length, ...rows.map((row) => row[column]!.length)));
  const table = new Table({
    head: head.map((title) => paint(options, 'bold', title)),
    colWidths: [...widths, Math.max(20, options.width - widths.reduce((sum, width) => sum + width, 0))],
    wordWrap: true,
    chars: { ...NO_LINES, middle: '' },
    // cli-table3 colours heads itself unless told not to; it does not ask whether there is a terminal.
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
  });
  table.push(...rows);
  const lines =
    rows.length === 0
      ? []
      : [
          '',
          ...table
            .toString()
            .split('\n')
            .map((line) => line.trimEnd()),
        ];
  const notes = [
    'needs: memory of one card at its peak; cards: the fewest of 1, 2, 4, 8 on which it fits, global batch kept.',
    'snug check --gpu NAME:CARDS shows the changes of a line.',
    ...(options.ram ? ['RAM: for all processes of the machine and 4 GiB for its system, in a size that is sold.'] : []),
  ];
  return plainSigns(
    options,
    [
      ...understood(report, options),
      ...lines,
      ...refusedText(fits, options),
      '',
      ...notes.map((note) => wrap(paint(options, 'gray', note), options.width, 0)),
    ].join('\n'),
  );
}
