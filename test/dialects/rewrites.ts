import { expect } from 'vitest';
import { writeLaunch } from '../../src/dialects/index.ts';
import type { SettingName } from '../../src/spec/index.ts';
import { change, read, readBack } from './phrase-book.ts';
import type { Machine } from './reading.ts';

const lines = (text: string): string[] => text.split('\n');

/** What a rewrite took out of the files and command, and what it put in: `- …` and `+ …`, one a line. */
export function difference(before: readonly string[], after: readonly string[]): string[] {
  const left = [...after];
  const gone = before.filter((line) => {
    const at = left.indexOf(line);
    if (at >= 0) left.splice(at, 1);
    return at < 0;
  });
  return [...gone.map((line) => `- ${line}`), ...left.map((line) => `+ ${line}`)];
}

/**
 * `writable` and `writeLaunch` must agree; what was written reads back as what was asked for, and all that is not changed
 * stays byte by byte. Gives the change, or the reason why there is none.
 */
export function rewritten(
  line: string,
  machine: Machine,
  settings: Partial<Record<SettingName, unknown>>,
): readonly string[] {
  const reading = read(line, machine);
  const pairs = Object.entries(settings) as [SettingName, unknown][];
  const changes = pairs.map(([name, to]) => change(name, to));
  const fitted = writeLaunch(reading, { changes, copyFolder: '/copies' });
  const refusals = pairs.map(([name, to]) => reading.writable(name, to)).filter((answer) => answer !== true);
  expect(fitted.ok, JSON.stringify(fitted.ok ? refusals : fitted.error)).toBe(refusals.length === 0);
  if (!fitted.ok) return refusals;
  const again = readBack(fitted.value, machine);
  for (const [name, to] of pairs) expect(again.spec[name]?.value, name).toEqual(to);
  const copies = new Map(fitted.value.files.map((file) => [file.copy, file.source]));
  const argv = fitted.value.argv.map((token) => {
    const copy = [...copies.keys()].find((path) => token.endsWith(path));
    return copy === undefined ? token : token.replace(copy, copies.get(copy)!);
  });
  return [
    ...difference(reading.command.argv, argv),
    ...fitted.value.files.flatMap((file) => {
      const { before, text } = file;
      return difference(lines(before), lines(text)).map((each) => each.replaceAll('/copies/', ''));
    }),
  ];
}
