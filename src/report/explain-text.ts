import { formatBytes } from '../core/index.ts';
import type { MemoryExplanation, PeakPlace } from '../memory/index.ts';
import { termText } from './memory-bars.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { wrap } from './wrap.ts';

/** `backward pass, layer 11, down_proj`. */
export const peakPlaceText = ({ phase, where, op }: PeakPlace): string =>
  [PHASES[phase], where === PHASES[phase] ? undefined : where, op].filter((part) => part !== undefined).join(', ');

const PHASES: Readonly<Record<PeakPlace['phase'], string>> = {
  load: 'loading',
  forward: 'forward pass',
  backward: 'backward pass',
  optimizer: 'optimizer step',
  eval: 'evaluation',
  save: 'saving',
  resume: 'resuming',
};

/** `trained_parameters 41,943,040`, `packed 3.4 GiB`. */
function inputText(name: string, value: number | string): string {
  const words = name.replaceAll('_', ' ');
  if (typeof value === 'string') return `${words} ${value}`;
  if (name.endsWith('_bytes')) return `${words.slice(0, -' bytes'.length)} ${formatBytes(value)}`;
  return `${words} ${value.toLocaleString('en-US')}`;
}

/** An address stays behind its `from`, however long it is. */
const sourceLine = (source: string, { width }: TextOptions): string =>
  source.includes(' ') ? wrap(`  from ${source}`, width, 4) : `  from ${source}`;

/** Each term with its formula, the numbers put in and where it comes from; then where the peak is. No line break at the end. */
export function renderExplanation(explanation: MemoryExplanation, options: TextOptions): string {
  const { terms, peak, phases } = explanation;
  const lines = terms.flatMap(({ term, bytes, formula, inputs, sources }) => [
    `${paint(options, 'bold', termText(term))}  ${formatBytes(bytes)}`,
    wrap(`  ${formula}`, options.width, 4),
    wrap(
      `  ${Object.entries(inputs)
        .map(([name, value]) => inputText(name, value))
        .join(' · ')}`,
      options.width,
      4,
    ),
    ...sources.map((source) => paint(options, 'gray', sourceLine(source, options))),
  ]);
  const others = phases.map(({ phase, bytes }) => `${PHASES[phase]} ${formatBytes(bytes)}`).join(', ');
  return [
    ...lines,
    wrap(`${paint(options, 'bold', 'the peak')}  ${peakPlaceText(peak)}`, options.width, 4),
    wrap(`  allocated by phase: ${others}`, options.width, 4),
  ]
    .map((line) => plainSigns(options, line))
    .join('\n');
}
