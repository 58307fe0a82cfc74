import { diffArrays } from 'diff';
import type { FittedLaunch, LaunchReading } from '../../dialects/index.ts';
import type { ShownEdit } from '../../report/index.ts';
import { formatOrigin, type SpecChange, settingKey } from '../../spec/index.ts';

/** Replaced, removed and added runs of two lists, in order; `at`: index in the old list. */
function changesOf(before: readonly string[], after: readonly string[]) {
  const found: { at: number; removed: readonly string[]; added: readonly string[] }[] = [];
  let at = 0;
  let removed: readonly string[] = [];
  for (const part of diffArrays([...before], [...after])) {
    if (part.removed) {
      removed = part.value;
      continue;
    }
    if (part.added) found.push({ at, removed, added: part.value });
    else if (removed.length > 0) found.push({ at, removed, added: [] });
    at += removed.length + (part.added ? 0 : part.value.length);
    removed = [];
  }
  if (removed.length > 0) found.push({ at, removed, added: [] });
  return found;
}

const linesOf = (text: string): readonly string[] => text.split(/\r?\n/);

function fileEdits({ source, before, text }: FittedLaunch['files'][number]): readonly ShownEdit[] {
  return changesOf(linesOf(before), linesOf(text)).flatMap(({ at, removed, added }) =>
    Array.from({ length: Math.max(removed.length, added.length) }, (_, index) => ({
      place: `${source}:${at + Math.min(index, Math.max(0, removed.length - 1)) + 1}`,
      before: removed[index]?.trim(),
      after: added[index]?.trim() ?? '',
    })),
  );
}

/** A flag and its value stand together, as they are typed. Values are changed in place, new flags come after the last. */
function commandEdits(argv: readonly string[], fitted: FittedLaunch): readonly ShownEdit[] {
  const copies = fitted.files.map(({ copy }) => copy);
  const isCopy = (token: string): boolean => copies.some((copy) => token.includes(copy));
  const named = (tokens: readonly string[], at: number): string => {
    const flag = tokens[at - 1];
    return flag?.startsWith('-') && !tokens[at]!.startsWith('-') ? `${flag} ${tokens[at]}` : tokens[at]!;
  };
  const changed = argv.flatMap((before, at): ShownEdit[] => {
    const after = fitted.argv[at];
    if (after === undefined || after === before || isCopy(after)) return [];
    return [{ place: 'command', before: named(argv, at), after: named(fitted.argv, at) }];
  });
  const added = fitted.argv.slice(argv.length).join(' ');
  return added === '' || isCopy(added) ? changed : [...changed, { place: 'command', before: undefined, after: added }];
}

const valueText = (value: unknown): string => (typeof value === 'string' ? value : JSON.stringify(value));

/** A native config is changed at its own keys: its command only carries placeholders for them. */
function nativeEdits({ spec }: LaunchReading, changes: readonly SpecChange[]): readonly ShownEdit[] {
  return changes.map(({ setting, from, to }) => {
    const origin = spec[setting]?.origin;
    const key = settingKey(setting);
    return {
      place: origin?.kind === 'file' ? formatOrigin(origin) : 'snug.yaml',
      before: origin?.kind === 'file' ? `${key}: ${valueText(from)}` : undefined,
      after: `${key}: ${valueText(to)}`,
    };
  });
}

/** What to change in the user's own files, command and environment. */
export function shownEdits(
  reading: LaunchReading,
  changes: readonly SpecChange[],
  fitted: FittedLaunch,
): readonly ShownEdit[] {
  const native = reading.stack.some(({ dialect }) => dialect === 'native');
  const environment = Object.entries(fitted.env)
    .filter(([name, value]) => reading.env[name] !== value)
    .map(([name, value]) => ({ place: 'environment', before: undefined, after: `${name}=${value}` }));
  if (native)
    return [
      ...nativeEdits(
        reading,
        changes.filter(({ setting }) => setting !== 'allocatorConf'),
      ),
      ...environment,
    ];
  return [...fitted.files.flatMap(fileEdits), ...commandEdits(reading.command.argv, fitted), ...environment];
}
