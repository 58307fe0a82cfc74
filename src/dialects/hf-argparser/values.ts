import { formatOrigin, type Origin } from '../../spec/index.ts';
import type { FileReference, FileValue, SourceEdit, Written } from '../dialect.ts';
import type { Flag } from './grammar.ts';

/** One key of a config file that stands for flags (TRL's YAML, a JSON argument file). */
export interface FileKey {
  readonly value: FileValue;
  readonly line: number;
  /** Why its text must not be changed: `alias`, `merge key`, …. */
  readonly hazard?: string;
}

/** A value where it was found, before it has a type. */
export interface Found {
  readonly key: string;
  /** Text from a command line, a typed value from a file, `true` for a bare flag, a list where several words follow. */
  readonly raw: FileValue;
  readonly origin: Origin;
  readonly place:
    | { readonly kind: 'flag'; readonly flag: Flag }
    /** `X.args` beside the script: read only, a flag on the command line beats it. */
    | { readonly kind: 'args-file' }
    | { readonly kind: 'file'; readonly hazard?: string }
    /** In the script's own text; `flag`: as the default of a flag. `unknown`: as an expression, `raw` is null then. */
    | { readonly kind: 'script'; readonly flag: boolean; readonly unknown: boolean };
}

/** Arguments of one script however they came: command line over `X.args` over config file over the script's own text. */
export interface Values {
  /** The first of `keys` that was given; a command line before a file. */
  readonly find: (...keys: readonly string[]) => Found | undefined;
  /** Everything given, each key once, as it holds. */
  readonly all: () => readonly Found[];
  /** What to change so that `key` is `value`. `aliases`: older names that count when they were used. */
  readonly assign: (key: string, value: FileValue, aliases?: readonly string[]) => Written;
  /** The config file, if the launch has one. */
  readonly file: FileReference | undefined;
}

export interface ValueSources {
  /** Whole command line; edits index into it. */
  readonly argv: readonly string[];
  readonly flags: readonly Flag[];
  /** Where a new flag goes: after the last script flag. */
  readonly appendAt: number;
  readonly argsFile?: { readonly path: string; readonly flags: readonly (Flag & { readonly line: number })[] };
  readonly file?: { readonly reference: FileReference; readonly keys: ReadonlyMap<string, FileKey> };
  /** What the script's text says. */
  readonly script?: {
    readonly path: string;
    readonly values: ReadonlyMap<
      string,
      { readonly value: FileValue | undefined; readonly line: number; readonly flag: boolean }
    >;
    /** Fields under the name of the flag that fills them. */
    readonly aliases: ReadonlyMap<string, string>;
  };
  /** Whether a key that stands nowhere goes into the file rather than on the command line. */
  readonly newKeysInFile?: (key: string) => boolean;
}

/** Layers the sources; `find` and `assign` agree on which place holds. */
export function layerValues(sources: ValueSources): Values {
  const { flags, argsFile, file } = sources;
  // The last of several holds.
  const lastFlag = new Map(flags.map((flag) => [flag.key, flag]));
  const fromFlags = (key: string): Found | undefined => {
    const flag = lastFlag.get(key);
    if (flag) {
      return {
        key,
        raw: flagValue(flag),
        origin: { kind: 'argv', index: valueIndex(flag) },
        place: { kind: 'flag', flag },
      };
    }
    const written = argsFile?.flags.findLast((each) => each.key === key);
    if (!argsFile || !written) return undefined;
    const origin: Origin = { kind: 'file', path: argsFile.path, line: written.line };
    return { key, raw: flagValue(written), origin, place: { kind: 'args-file' } };
  };
  const fromFile = (key: string): Found | undefined => {
    const entry = file?.keys.get(key);
    if (!file || !entry) return undefined;
    const origin: Origin = { kind: 'file', path: file.reference.source.path, line: entry.line };
    const place = { kind: 'file' as const, ...(entry.hazard ? { hazard: entry.hazard } : {}) };
    return { key, raw: entry.value, origin, place };
  };
  const fromScript = (key: string): Found | undefined => {
    const entry = sources.script?.values.get(key);
    if (!sources.script || !entry) return undefined;
    const origin: Origin = { kind: 'file', path: sources.script.path, line: entry.line };
    const place = { kind: 'script', flag: entry.flag, unknown: entry.value === undefined } as const;
    return { key, raw: entry.value ?? null, origin, place };
  };
  const find = (...asked: readonly string[]): Found | undefined => {
    const keys = asked.map((key) => sources.script?.aliases.get(key) ?? key);
    return first(keys, fromFlags) ?? first(keys, fromFile) ?? first(keys, fromScript);
  };
  const assign = (key: string, value: FileValue, aliases: readonly string[] = []): Written => {
    const found = find(key, ...aliases);
    const name = found?.key ?? key;
    if (found?.place.kind === 'flag') return replaceFlag(sources.argv, found.place.flag, value);
    if (found?.place.kind === 'script' && !found.place.flag) {
      return { ok: false, reason: `${name} stands in ${formatOrigin(found.origin)}, and a script is not rewritten` };
    }
    if (
      found?.place.kind === 'file' ||
      ((!found || found.place.kind === 'script') && file && (sources.newKeysInFile?.(key) ?? true))
    ) {
      const hazard = found?.place.kind === 'file' ? found.place.hazard : undefined;
      const path = file!.reference.source.path;
      if (hazard) return { ok: false, reason: `${name} in ${path} comes through ${hazard}, which is not rewritten` };
      if (file!.reference.pointer.kind === 'fixed') return { ok: false, reason: file!.reference.pointer.reason };
      return { ok: true, edits: [{ kind: 'file', path, keyPath: [name], value }] };
    }
    const tokens = [`--${name}`, ...listOf(value).map((item) => flagText(item))];
    return { ok: true, edits: [{ kind: 'insert', at: sources.appendAt, key: name, tokens }] };
  };
  const all = (): readonly Found[] => {
    const keys = new Set([...flags, ...(argsFile?.flags ?? [])].map((flag) => flag.key));
    for (const key of file?.keys.keys() ?? []) keys.add(key);
    return [...keys].map((key) => find(key)!);
  };
  return { find, all, assign, file: file?.reference };
}

function first<T>(keys: readonly string[], look: (key: string) => T | undefined): T | undefined {
  for (const key of keys) {
    const found = look(key);
    if (found !== undefined) return found;
  }
  return undefined;
}

function flagValue(flag: Flag): FileValue {
  if (flag.negated) return false;
  if (flag.values.length === 0) return true;
  return flag.values.length === 1 ? flag.values[0]!.text : flag.values.map((value) => value.text);
}

/** The token that a person would point at: the value, or the flag where it carries its value itself. */
const valueIndex = (flag: Flag): number => flag.values[0]?.index ?? flag.index;

const isList = (value: FileValue): value is readonly FileValue[] => Array.isArray(value);
const listOf = (value: FileValue): readonly FileValue[] => (isList(value) ? value : [value]);

/** A value as one word of a command line; maps as JSON, which HfArgumentParser reads from a string. */
export function flagText(value: FileValue, before?: string): string {
  if (typeof value === 'boolean') {
    const text = String(value);
    return before && /^(?:True|False)$/.test(before) ? text[0]!.toUpperCase() + text.slice(1) : text;
  }
  if (value === null) return 'none';
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Writes into the tokens of a flag and keeps its spelling and style; a bare boolean stays one token (`--bf16=false`). */
function replaceFlag(argv: readonly string[], flag: Flag, value: FileValue): Written {
  const items = listOf(value);
  const spelling = flag.negated ? flag.spelling.replace(/^--no[_-]/, '--') : flag.spelling;
  if (flag.style !== 'space') {
    if (items.length !== 1)
      return { ok: false, reason: `${flag.spelling} is written with one value, and the change needs several` };
    if (flag.style === 'bare' && !flag.negated && items[0] === true) return { ok: true, edits: [] };
    const text = `${spelling}=${flagText(items[0]!, flag.values[0]?.text)}`;
    return { ok: true, edits: [{ kind: 'token', index: flag.index, text }] };
  }
  const edits: SourceEdit[] = [];
  for (const [at, old] of flag.values.entries()) {
    const item = items[at];
    if (item === undefined) edits.push({ kind: 'remove', index: old.index });
    else if (flagText(item, old.text) !== argv[old.index]) {
      edits.push({ kind: 'token', index: old.index, text: flagText(item, old.text) });
    }
  }
  const more = items.slice(flag.values.length).map((item) => flagText(item));
  if (more.length > 0) edits.push({ kind: 'insert', at: flag.end, key: `${flag.key}[]`, tokens: more });
  return { ok: true, edits };
}
