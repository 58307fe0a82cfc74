import { ok, type Result } from '../core/index.ts';
import type { Origin } from '../spec/index.ts';
import type { ReadContext, Unread } from './contract.ts';
import type { FileReference, FileValue, Pointer, SourceEdit, Written } from './dialect.ts';
import { readFlatConfig } from './flat-config.ts';
import type { Flag } from './hf-argparser/grammar.ts';
import type { FileKey, Found, Values } from './hf-argparser/values.ts';
import { cannot, wrote } from './hf-argparser/written.ts';
import { readYaml } from './yaml-read.ts';

/** A nested config under dotted keys (`model.lora_rank`): maps and what they hold, but not the places of a list. */
export interface DottedConfig {
  readonly reference: FileReference;
  readonly keys: ReadonlyMap<string, FileKey>;
  readonly unread: readonly Unread[];
}

/** Reads a nested YAML or JSON file. `pointer`: how the launch names it. */
export function readDottedConfig(path: string, pointer: Pointer, context: ReadContext): Result<DottedConfig> {
  const flat = readFlatConfig(path, pointer, context);
  if (!flat.ok) return flat;
  const { reference, yaml, unread } = flat.value;
  const keys = new Map<string, FileKey>();
  for (const [key, entry] of flat.value.keys) flatten(key, entry.value, entry, keys);
  // Lines and hazards of what stands deeper.
  for (const { keyPath, value, line, hazards } of yaml?.entries ?? []) {
    const key = keyPath.join('.');
    const [hazard] = hazards;
    if (keys.has(key)) keys.set(key, { value, line, ...(hazard ? { hazard: `a value with ${hazard}` } : {}) });
  }
  return ok({ reference, keys, unread });
}

const isMap = (value: FileValue): value is { readonly [key: string]: FileValue } =>
  value !== null && typeof value === 'object' && !Array.isArray(value);

function flatten(key: string, value: FileValue, entry: FileKey, keys: Map<string, FileKey>): void {
  keys.set(key, { ...entry, value });
  if (!isMap(value)) return;
  for (const [name, inner] of Object.entries(value)) flatten(`${key}.${name}`, inner, entry, keys);
}

/** A setting of the command line: `model.lora_rank=16`, `--train.micro_batch_size 2`. */
export interface Override {
  readonly key: string;
  /** As the tool reads the text. */
  readonly value: FileValue;
  /** Token that holds the value, and what stands before it there. */
  readonly index: number;
  readonly before: string;
}

/** A key that the tool has without being told. */
export interface Builtin {
  readonly value: FileValue;
  readonly origin: Origin;
}

export interface DottedSources {
  readonly overrides: readonly Override[];
  readonly file?: DottedConfig;
  /** Keys that the command takes out of the file, so that nothing written there would count. */
  readonly removed?: readonly string[];
  /** What holds where neither command nor file says it: a config that comes with the tool. */
  readonly builtin?: ReadonlyMap<string, Builtin>;
  /** Where a new word of the command goes. */
  readonly appendAt: number;
  /** A new setting as words of the command. */
  readonly spell: (key: string, value: FileValue) => readonly string[];
  /** A value inside its word; undefined: it cannot stand there. */
  readonly format: (value: FileValue) => string | undefined;
}

/**
 * Command line over file over what comes with the tool. A value of the file that cannot be edited in place (an alias, an
 * interpolation) is written as a word of the command, which wins over it.
 */
export function dottedValues(sources: DottedSources): Values {
  const { overrides, file, builtin, appendAt, spell, format, removed = [] } = sources;
  const takenOut = (key: string): boolean => removed.some((name) => key === name || key.startsWith(`${name}.`));
  const find = (...keys: readonly string[]): Found | undefined => {
    for (const key of keys) {
      const override = overrides.findLast((each) => each.key === key);
      if (override) return fromOverride(override);
    }
    for (const key of keys) {
      const entry = takenOut(key) ? undefined : file?.keys.get(key);
      if (file && entry) {
        const origin: Origin = { kind: 'file', path: file.reference.source.path, line: entry.line };
        const raw = resolved(entry.value, find);
        return {
          key,
          raw,
          origin,
          place: { kind: 'file', ...(entry.hazard ? { hazard: entry.hazard } : {}) },
        };
      }
    }
    for (const key of keys) {
      const entry = takenOut(key) ? undefined : builtin?.get(key);
      if (entry) return { key, raw: entry.value, origin: entry.origin, place: { kind: 'file', hazard: 'the tool' } };
    }
    return undefined;
  };
  const assign = (key: string, value: FileValue, aliases: readonly string[] = []): Written => {
    const found = find(key, ...aliases);
    const name = found?.key ?? key;
    const text = format(value);
    const cannotSpell = cannot(`${name} cannot be written as a word of the command`);
    const override = overrides.findLast((each) => each.key === name);
    if (override) {
      return text === undefined
        ? cannotSpell
        : wrote({ kind: 'token', index: override.index, text: override.before + text });
    }
    const hazard = found?.place.kind === 'file' ? found.place.hazard : undefined;
    if (file && hazard === undefined && !takenOut(name) && file.reference.pointer.kind !== 'fixed') {
      return wrote({ kind: 'file', path: file.reference.source.path, keyPath: name.split('.'), value });
    }
    if (text === undefined) return cannotSpell;
    return wrote({ kind: 'insert', at: appendAt, key: name, tokens: spell(name, value) });
  };
  const all = (): readonly Found[] => {
    const keys = new Set([...overrides.map((each) => each.key), ...(file?.keys.keys() ?? [])]);
    return [...keys].flatMap((key) => find(key) ?? []).filter((found) => !isMap(found.raw));
  };
  return { find, all, assign, file: file?.reference };
}

function fromOverride({ key, value, index, before }: Override): Found {
  const flag: Flag = {
    key,
    known: true,
    spelling: before.replace(/=$/, ''),
    index,
    style: before === '' ? 'space' : 'equals',
    negated: false,
    values: [{ text: String(value), index }],
    end: index + 1,
  };
  return { key, raw: value, origin: { kind: 'argv', index }, place: { kind: 'flag', flag } };
}

/** `${name.of.a.key}` as OmegaConf fills it in; other gaps stay as they are. */
function resolved(value: FileValue, find: Values['find'], depth = 0): FileValue {
  if (typeof value !== 'string' || depth > 4) return value;
  const whole = /^\$\{([\w.]+)\}$/.exec(value)?.[1];
  if (whole !== undefined) {
    const found = find(whole);
    return found ? resolved(found.raw, find, depth + 1) : value;
  }
  return value.replace(/\$\{([\w.]+)\}/g, (gap, name: string) => {
    const inner = find(name)?.raw;
    return typeof inner === 'string' || typeof inner === 'number' ? String(resolved(inner, find, depth + 1)) : gap;
  });
}

/** Text of a command line as a YAML reader takes it: `[q_proj,v_proj]` is a list, `True` a boolean, `None` a word. */
export function yamlWord(text: string): FileValue {
  const read = readYaml(`word: ${text}\n`, 'the command');
  return read.ok ? (read.value.get('word')?.value ?? null) : text;
}

/** Edits as the undoing of settings: whatever gives `key` on the command line is taken out. */
export const withoutOverrides = (overrides: readonly Override[], key: string): readonly SourceEdit[] =>
  overrides.filter((each) => each.key === key).map(({ index }) => ({ kind: 'remove', index }));
