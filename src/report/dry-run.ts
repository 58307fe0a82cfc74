import { createTwoFilesPatch } from 'diff';
import type { FittedLaunch } from '../dialects/index.ts';
import { maskSecrets } from './mask-secrets.ts';
import { shellWords } from './shell-words.ts';
import { paint, type TextOptions } from './text-options.ts';

/** The change of one file as a unified diff, secrets masked; empty when the texts are equal. */
export function unifiedDiff(source: string, copy: string, before: string, after: string): string {
  if (before === after) return '';
  const patch = createTwoFilesPatch(source, copy, before, after, undefined, undefined, { context: 3 });
  return maskSecrets(patch.replace(/^={5,}\n/, '').trimEnd());
}

const painted = (diff: string, options: TextOptions): string =>
  diff
    .split('\n')
    .map((line) => {
      if (line.startsWith('+++') || line.startsWith('---')) return paint(options, 'bold', line);
      if (line.startsWith('@@')) return paint(options, 'cyan', line);
      if (line.startsWith('+')) return paint(options, 'green', line);
      return line.startsWith('-') ? paint(options, 'red', line) : line;
    })
    .join('\n');

/**
 * What would be started: every changed file as a diff, then the command on one line that a shell takes as it is, the variables
 * in front. Secrets are masked, so a command with a token in it has to be completed.
 */
export function renderDryRun(fitted: FittedLaunch, options: TextOptions): string {
  const diffs = fitted.files
    .map(({ source, copy, before, text }) => unifiedDiff(source, copy, before, text))
    .filter((diff) => diff !== '')
    .map((diff) => painted(diff, options));
  const variables = Object.entries(maskSecrets(fitted.env)).map(([name, value]) => `${name}=${shellWords([value])}`);
  if (fitted.byHand) {
    const { place, reason, command } = fitted.byHand;
    return [...diffs, `# to be written by hand at ${place}: ${reason}\n${maskSecrets(command)}`].join('\n\n');
  }
  return [...diffs, [...variables, shellWords(maskSecrets(fitted.argv))].join(' ')].join('\n\n');
}
