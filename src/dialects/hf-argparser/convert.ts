import { type FloatDType, parseFloatDType } from '../../core/index.ts';
import type { FileValue } from '../dialect.ts';
import { didYouMean } from '../did-you-mean.ts';

/** A typed value, or what was expected instead. */
export type Converted<T> =
  | { readonly ok: true; readonly value: T }
  /** `near`: a known name that differs by a slip of the pen. */
  | { readonly ok: false; readonly expected: string; readonly near?: string };
export type Convert<T> = (raw: FileValue) => Converted<T>;

const good = <T>(value: T): Converted<T> => ({ ok: true, value });
const bad = (expected: string): Converted<never> => ({ ok: false, expected });

/** Python's `int("…")`, or a number that a file typed already (`2.0` counts as 2). */
export const toInteger =
  (least: number): Convert<number> =>
  (raw) => {
    const value =
      typeof raw === 'string' && /^\s*[-+]?\d+(?:_\d+)*\s*$/.test(raw) ? Number(raw.replaceAll('_', '')) : raw;
    return typeof value === 'number' && Number.isSafeInteger(value) && value >= least
      ? good(value)
      : bad(least > 0 ? 'a whole number above 0' : `a whole number from ${least}`);
  };

/** Python's `float("…")`; strings of YAML (`1e-5`) go through here as they do through argparse. */
export const toNumber: Convert<number> = (raw) => {
  const value = typeof raw === 'string' && raw.trim() !== '' ? Number(raw.replaceAll('_', '')) : raw;
  return typeof value === 'number' && Number.isFinite(value) ? good(value) : bad('a number');
};

/** hf_argparser's `string_to_bool`; a file's own booleans stay what they are. */
export const toBoolean: Convert<boolean> = (raw) => {
  if (typeof raw === 'boolean') return good(raw);
  if (raw === 0 || raw === 1) return good(raw === 1);
  if (typeof raw === 'string' && /^(?:yes|true|t|y|1)$/i.test(raw)) return good(true);
  if (typeof raw === 'string' && /^(?:no|false|f|n|0)$/i.test(raw)) return good(false);
  return bad('true or false');
};

/** Text as it stands; a number of a file as its text. */
export const toText: Convert<string> = (raw) =>
  typeof raw === 'string' || typeof raw === 'number' ? good(String(raw)) : bad('a word');

export const toOneOf =
  <T extends string>(...names: readonly T[]): Convert<T> =>
  (raw) =>
    names.includes(raw as T)
      ? good(raw as T)
      : { ...bad(names.length > 6 ? 'a known name' : names.join(', ')), ...nearest(String(raw), names) };

function nearest(word: string, names: readonly string[]): { readonly near?: string } {
  const [, near] = /^did you mean (.+)$/.exec(didYouMean(word, names)) ?? [];
  return near === undefined ? {} : { near };
}

/** A list of words: several words of a command line, a list of a file, or one word. */
export const toWords: Convert<readonly string[]> = (raw) => {
  if (Array.isArray(raw)) return raw.every((item) => typeof item === 'string') ? good(raw as string[]) : bad('words');
  return typeof raw === 'string' ? good([raw]) : bad('words');
};

export const toFloatDType: Convert<FloatDType | 'auto'> = (raw) => {
  const dtype = raw === 'auto' ? 'auto' : typeof raw === 'string' ? parseFloatDType(raw) : undefined;
  return dtype ? good(dtype) : bad('float32, bfloat16, float16 or auto');
};

/** A JSON object in a string, as HfArgumentParser's dict fields take it, or a map of a file. */
export const toMap: Convert<Readonly<Record<string, FileValue>>> = (raw) => {
  let value: unknown = raw;
  if (typeof raw === 'string') {
    try {
      value = JSON.parse(raw);
    } catch {
      return bad('a JSON object');
    }
  }
  return value !== null && typeof value === 'object' && !Array.isArray(value)
    ? good(value as Readonly<Record<string, FileValue>>)
    : bad('a JSON object');
};

/** `none` and an empty value stand for "not set" where the field may be absent. */
export const orNull =
  <T>(convert: Convert<T>): Convert<T | null> =>
  (raw) =>
    raw === null || (typeof raw === 'string' && /^(?:none|null)$/i.test(raw)) ? good(null) : convert(raw);
