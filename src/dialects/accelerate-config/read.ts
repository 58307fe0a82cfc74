import { type Diagnostic, error, fail, ok, type Result, warning } from '../../core/index.ts';
import type { Origin } from '../../spec/index.ts';
import type { LaunchSource, Unread } from '../contract.ts';
import type { FileValue } from '../dialect.ts';
import { didYouMean } from '../did-you-mean.ts';
import { readYaml, type YamlEntry } from '../yaml-read.ts';
import { NO_EFFECT_KEYS, READ_KEYS, READ_SECTION_KEYS, SECTIONS } from './keys.ts';

/** One value that a launch gives, under the name of the option of `accelerate launch`. */
export interface Given {
  /** null: written as `${…}` or the like, or as nothing. */
  readonly value: FileValue;
  readonly origin: Origin;
  /** Keys of the config file that lead to it; undefined: an option. */
  readonly keyPath?: readonly string[];
}

/** A config file of accelerate: its values by option name, nested ones too. */
export interface AccelerateConfig {
  readonly source: LaunchSource;
  readonly values: ReadonlyMap<string, Given>;
  readonly unread: readonly Unread[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Reads the text; an error where accelerate itself would stop at the file. */
export function readAccelerateConfig(source: LaunchSource): Result<AccelerateConfig> {
  const file = readYaml(source.text, source.path);
  if (!file.ok) return file;
  const values = new Map<string, Given>();
  const unread: Unread[] = [];
  const diagnostics: Diagnostic[] = [];
  for (const entry of file.value.entries) {
    const [top, inner, deeper] = entry.keyPath as [string, string?, string?];
    const origin: Origin = { kind: 'file', path: source.path, line: entry.line };
    if (deeper !== undefined) continue;
    const value = entry.hazards.includes('interpolation') || entry.hazards.includes('tag') ? null : entry.value;
    if (inner === undefined) {
      if (READ_KEYS.has(top)) values.set(top, { value, origin, keyPath: entry.keyPath });
      if (top === 'compute_environment' || (top === 'use_cpu' && value === false)) {
        unread.push({ key: top, origin, reason: 'no-effect-on-memory' });
      } else if (READ_KEYS.has(top)) continue;
      else if (NO_EFFECT_KEYS.has(top)) unread.push({ key: top, origin, reason: 'no-effect-on-memory' });
      else if (!Object.hasOwn(SECTIONS, top)) {
        unread.push({ key: top, origin, reason: 'unknown-key' });
        diagnostics.push(unknownKey(entry, source));
      }
      continue;
    }
    if (!Object.hasOwn(SECTIONS, top)) continue;
    const prefix = SECTIONS[top]!;
    const option = inner.startsWith(prefix) ? inner : `${prefix}${inner}`;
    values.set(option, { value, origin, keyPath: entry.keyPath });
    if (!READ_SECTION_KEYS.has(option)) unread.push({ key: entry.keyPath.join('.'), origin, reason: 'not-estimated' });
  }
  for (const [option, given] of values) {
    if (given.value === null && file.value.get(...given.keyPath!)?.hazards.includes('interpolation')) {
      unread.push({ key: option, origin: given.origin, reason: 'interpolation' });
    }
  }
  if (!values.has('distributed_type')) {
    return fail(
      error('no-distributed-type', `${source.path} names no distributed_type, and accelerate stops at it`, {
        location: source.path,
        help: "add distributed_type: MULTI_GPU, FSDP, DEEPSPEED or 'NO'",
      }),
    );
  }
  return ok({ source, values, unread, diagnostics });
}

function unknownKey(entry: YamlEntry, source: LaunchSource): Diagnostic {
  const key = entry.keyPath[0]!;
  return warning(
    'unknown-key',
    `${key} is no key of an accelerate 1.15 config, and accelerate stops at keys it does not know`,
    {
      location: `${source.path}:${entry.line}`,
      help: didYouMean(key, [...READ_KEYS, ...NO_EFFECT_KEYS, ...Object.keys(SECTIONS)]),
    },
  );
}
