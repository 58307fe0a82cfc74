import { type Diagnostic, error, warning } from '../../core/index.ts';
import { formatOrigin, type Origin, type Setting } from '../../spec/index.ts';
import type { Unread } from '../contract.ts';
import type { FileValue } from '../dialect.ts';
import type { Convert } from './convert.ts';
import type { Found, Values } from './values.ts';

/** Turns found values into settings, and keeps what went wrong and which keys were looked at. */
export interface SettingReader {
  readonly values: Values;
  /** The value of the first key that was given, else what holds without it. */
  readonly setting: <T>(keys: readonly string[], convert: Convert<T>, otherwise: Setting<T>) => Setting<T>;
  /** As `setting`; undefined when no key was given or its value cannot be known. */
  readonly given: <T>(keys: readonly string[], convert: Convert<T>) => { value: T; origin: Origin } | undefined;
  /** Says that these keys are understood, whatever they hold. */
  readonly note: (...keys: readonly string[]) => void;
  readonly noted: ReadonlySet<string>;
  readonly diagnostics: readonly Diagnostic[];
  readonly unread: readonly Unread[];
}

const INTERPOLATION = /\$\{|\$\(|`|\{\{|^\$[A-Za-z_]/;

/**
 * `strict`: the tool's own parser would stop at a value of the wrong type, so it is an error; otherwise (a script whose
 * parser nobody knows) the setting is unknown and a warning says so.
 */
export function settingReader(values: Values, strict: boolean): SettingReader {
  const noted = new Set<string>();
  const unread: Unread[] = [];
  const diagnostics: Diagnostic[] = [];
  const reported = new Set<string>();

  const refuse = (found: Found, { expected, near }: { readonly expected: string; readonly near?: string }): void => {
    if (reported.has(found.key)) return;
    reported.add(found.key);
    const say = strict ? error : warning;
    diagnostics.push(
      say('bad-value', `${found.key} is ${show(found.raw)}, expected ${expected}`, {
        location: formatOrigin(found.origin),
        help: near === undefined ? `give ${found.key} ${expected}` : `did you mean ${near}`,
      }),
    );
  };
  const look = <T>(keys: readonly string[], convert: Convert<T>): Setting<T> | undefined => {
    for (const key of keys) noted.add(key);
    const found = values.find(...keys);
    if (!found) return undefined;
    noted.add(found.key);
    // A default in a script's text that says something else under this name says nothing here.
    if (found.place.kind === 'script') {
      if (found.place.unknown) return { value: null, origin: found.origin };
      const read = convert(found.raw);
      return read.ok ? { value: read.value, origin: found.origin } : undefined;
    }
    if (isGap(found)) {
      if (!reported.has(found.key)) unread.push({ key: found.key, origin: found.origin, reason: 'interpolation' });
      reported.add(found.key);
      return { value: null, origin: found.origin };
    }
    const converted = convert(found.raw);
    if (!converted.ok) refuse(found, converted);
    return { value: converted.ok ? converted.value : null, origin: found.origin };
  };
  return {
    values,
    setting: (keys, convert, otherwise) => look(keys, convert) ?? otherwise,
    given: (keys, convert) => {
      const found = look(keys, convert);
      return found && found.value !== null ? { value: found.value, origin: found.origin } : undefined;
    },
    note: (...keys) => {
      for (const key of keys) noted.add(key);
    },
    noted,
    diagnostics,
    unread,
  };
}

/** Keys that were looked at and of which a diagnostic says that the estimate leaves them out. */
export const leftOut = (reader: SettingReader, diagnostics: readonly Diagnostic[]): readonly Unread[] => {
  const places = new Set(diagnostics.filter(({ code }) => code === 'not-estimated').map(({ location }) => location));
  return reader.values
    .all()
    .filter(({ key, origin }) => reader.noted.has(key) && places.has(formatOrigin(origin)))
    .map(({ key, origin }) => ({ key, origin, reason: 'not-estimated' }));
};

/** Text that somebody else fills in before the trainer sees it, or that it would take as it stands. */
const isGap = ({ raw }: Found): boolean => typeof raw === 'string' && INTERPOLATION.test(raw);

const show = (raw: FileValue): string => (typeof raw === 'string' ? `"${raw}"` : JSON.stringify(raw));
