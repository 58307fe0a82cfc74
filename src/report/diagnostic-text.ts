import type { Diagnostic, Severity } from '../core/index.ts';
import { maskSecrets } from './mask-secrets.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { wrap } from './wrap.ts';

const COLOURS = { error: 'red', warning: 'yellow', note: 'cyan' } as const satisfies Record<Severity, string>;

/**
 * A message to the user: `error[code]: message`, then where, facts, and the way out, each on a line of its own that wraps under
 * itself. No line break at the end.
 */
export function renderDiagnostic(diagnostic: Diagnostic, options: TextOptions): string {
  const { code, severity, message, location, excerpt, notes = [], help } = diagnostic;
  const labelled = (label: string, text: string): string =>
    wrap(`  ${label}: ${maskSecrets(text)}`, options.width, label.length + 4);
  const place = location === undefined ? [] : [`  --> ${location}${excerpt ? `  ${maskSecrets(excerpt.trim())}` : ''}`];
  const coloured = (label: string, text: string): string =>
    text.replace(label, paint(options, label === 'help' ? 'green' : 'cyan', label));
  const head = `${severity}[${code}]`;
  const lines = [
    wrap(`${head}: ${maskSecrets(message)}`, options.width, 2).replace(
      head,
      paint(options, ['bold', COLOURS[severity]], head),
    ),
    ...place.map((line) => line.replace('-->', paint(options, 'blue', '-->'))),
    ...notes.map((text) => coloured('note', labelled('note', text))),
    ...(help === undefined ? [] : [coloured('help', labelled('help', help))]),
  ];
  return plainSigns(options, lines.join('\n'));
}
