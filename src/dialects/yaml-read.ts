import { isAlias, isMap, isScalar, isSeq, type ParsedNode, type Scalar, type YAMLMap } from 'yaml';
import { error, fail, ok, type Result } from '../core/index.ts';
import type { FileValue } from './dialect.ts';
import { MAX_ALIASES, parseYamlDocument, type YamlDocument } from './yaml-document.ts';
import { resolvePlainScalar, resolveTaggedScalar } from './yaml-scalars.ts';

/** Why a value cannot be taken, or its text not changed, without looking further. */
export type YamlHazard =
  /** `*name`: written elsewhere. */
  | 'alias'
  /** `&name`: other places of the file stand for this one. */
  | 'anchor'
  /** Comes in through `<<`. */
  | 'merge'
  /** The key stands there twice; the last one holds. */
  | 'duplicate'
  /** `${…}` or `{{…}}`: known only after somebody filled it in; `value` is the text. */
  | 'interpolation'
  /** A tag such as `!include`; `value` is null. */
  | 'tag';

/** One key of a YAML file, nested ones included. */
export interface YamlEntry {
  /** Keys from the top, places in a list as numbers in text (`['datasets', '0', 'path']`). */
  readonly keyPath: readonly string[];
  /** As PyYAML (YAML 1.1) reads it: `no` is false, `1e-5` a string, nothing at all is null. */
  readonly value: FileValue;
  /** 1-based line of the key. */
  readonly line: number;
  /** The value as written, without what is around it. */
  readonly raw: string;
  readonly hazards: readonly YamlHazard[];
}

/** The keys of one YAML file. */
export interface YamlFile {
  /** Every key in the order of the file, the parent before its children; of a key that stands twice only the last. */
  readonly entries: readonly YamlEntry[];
  /** The entry at `get('lora', 'r')`. */
  readonly get: (...keyPath: readonly string[]) => YamlEntry | undefined;
}

/** Far above any config: the longest mixtures of data sets have some hundred. */
const MAX_KEYS = 5000;

/** A launch is read again once the machine is known, and a bare file first to see whose it is: the same text within milliseconds. */
let lastRead: { readonly text: string; readonly path: string; readonly result: Result<YamlFile> } | undefined;

/** Reads a YAML file as its trainer will. `path` is how messages name it. */
export function readYaml(text: string, path: string): Result<YamlFile> {
  if (lastRead?.text === text && lastRead.path === path) return lastRead.result;
  const result = readAnew(text, path);
  lastRead = { text, path, result };
  return result;
}

function readAnew(text: string, path: string): Result<YamlFile> {
  const parsed = parseYamlDocument(text, path);
  if (!parsed.ok) return parsed;
  const reader = new Reader(parsed.value);
  if (parsed.value.root) reader.readMap(parsed.value.root, [], []);
  if (reader.tooManyAliases !== undefined) {
    const help = 'write the values out where they are used';
    const message = `aliases of this file stand for more than ${MAX_ALIASES} places`;
    return fail(parsed.value.problem('yaml-aliases', reader.tooManyAliases, message, help));
  }
  const { entries } = reader;
  if (entries.length > MAX_KEYS) {
    return fail(
      error('yaml-too-many-keys', `more than ${MAX_KEYS} keys, which no launch config has`, {
        location: `${path}:${entries[MAX_KEYS]!.line}`,
        help: 'give the config of the launch, not its data',
      }),
    );
  }
  const byPath = new Map(entries.map((entry) => [JSON.stringify(entry.keyPath), entry]));
  return ok({ entries, get: (...keyPath) => byPath.get(JSON.stringify(keyPath)) });
}

type KeyPath = readonly string[];
type Hazards = readonly YamlHazard[];

/** One pass over a document; holds what the pass has seen. */
class Reader {
  readonly entries: YamlEntry[] = [];
  /** Offset of the alias that went past the limit. */
  tooManyAliases: number | undefined;
  private aliases = 0;
  private readonly document: YamlDocument;

  constructor(document: YamlDocument) {
    this.document = document;
  }

  /** Adds the entries of a mapping and gives its value. */
  readMap(map: YAMLMap, keyPath: KeyPath, inherited: Hazards): { [key: string]: FileValue } {
    const value: { [key: string]: FileValue } = Object.create(null);
    for (const pair of mergedPairs(map, this.document)) {
      // Read even when a later pair of the same name holds, so that its aliases count.
      const hazards: Hazards = [...inherited, ...pair.hazards];
      const read = this.readEntry(pair.key, pair.value, [...keyPath, pair.name], hazards);
      value[pair.name] = read;
    }
    return { ...value };
  }

  private readEntry(key: ParsedNode, node: ParsedNode | null, keyPath: KeyPath, hazards: Hazards): FileValue {
    const own = new Set<YamlHazard>(hazards);
    if (hasUsedAnchor(node)) own.add('anchor');
    const place = this.entries.length;
    const target = this.follow(node, own);
    const raw = node ? this.document.text.slice(node.range[0], node.range[1]).replace(/\s+$/, '') : '';
    if (isTemplate(target, raw)) own.add('interpolation');
    const passedOn = [...own].filter((hazard) => hazard !== 'duplicate' && hazard !== 'interpolation');
    const value = this.readValue(target, raw, keyPath, passedOn, own);
    const line = this.document.lineOf(key.range[0]);
    this.entries.splice(place, 0, { keyPath, value, line, raw, hazards: [...own] });
    return value;
  }

  private readValue(
    node: ParsedNode | null,
    raw: string,
    keyPath: KeyPath,
    hazards: Hazards,
    own: Set<YamlHazard>,
  ): FileValue {
    if (node === null) return null;
    if (isScalar(node)) {
      const scalar = readScalar(node, this.document.text);
      if (scalar === undefined) own.add('tag');
      return scalar ?? null;
    }
    if (own.has('interpolation') && isMap(node)) return raw;
    if (isMap(node)) return this.readMap(node, keyPath, hazards);
    if (!isSeq(node)) return null;
    return node.items.map((item, index) => {
      const child = item as ParsedNode | null;
      return this.readEntry(child ?? node, child, [...keyPath, String(index)], hazards);
    });
  }

  /** The node an alias stands for; counts what it stands for against the limit. */
  private follow(node: ParsedNode | null, own: Set<YamlHazard>): ParsedNode | null {
    if (!isAlias(node)) return node;
    own.add('alias');
    this.aliases += 1;
    if (this.aliases > MAX_ALIASES) {
      this.tooManyAliases ??= node.range[0];
      return null;
    }
    return this.document.resolve(node) ?? null;
  }
}

/** A pair of a mapping as PyYAML sees it: what `<<` brings in comes first, explicit keys win over it. */
export interface NamedPair {
  readonly name: string;
  readonly key: ParsedNode;
  readonly value: ParsedNode | null;
  readonly hazards: readonly ('merge' | 'duplicate')[];
}

/** Pairs of a mapping in the order of the file, one for each name (the one that holds), merged ones included. */
export function mergedPairs(map: YAMLMap, document: YamlDocument): readonly NamedPair[] {
  return pairsOf(map, document, new Map());
}

/** `seen` keeps every mapping from being merged twice, so that neither a ring nor a doubling nest of `<<` runs away. */
function pairsOf(map: YAMLMap, document: YamlDocument, seen: Map<YAMLMap, readonly NamedPair[]>): readonly NamedPair[] {
  const known = seen.get(map);
  if (known) return known;
  seen.set(map, []);
  const explicit = new Map<string, NamedPair>();
  const merged = new Map<string, NamedPair>();
  for (const { key, value } of map.items as readonly { key: ParsedNode | null; value: ParsedNode | null }[]) {
    if (key === null) continue;
    if (isMergeKey(key)) {
      for (const pair of sourcesOf(value, document).flatMap((source) => pairsOf(source, document, seen))) {
        if (!merged.has(pair.name)) merged.set(pair.name, { ...pair, hazards: ['merge' as const] });
      }
      continue;
    }
    const name = keyName(key, document);
    const twice = explicit.has(name);
    explicit.delete(name);
    explicit.set(name, { name, key, value, hazards: twice ? ['duplicate'] : [] });
  }
  const pairs = [...[...merged.values()].filter((pair) => !explicit.has(pair.name)), ...explicit.values()];
  seen.set(map, pairs);
  return pairs;
}

function sourcesOf(value: ParsedNode | null, document: YamlDocument): readonly YAMLMap[] {
  const node = isAlias(value) ? document.resolve(value) : value;
  if (isMap(node)) return [node];
  if (!isSeq(node)) return [];
  return node.items.flatMap((item) => {
    const source = isAlias(item) ? document.resolve(item) : item;
    return isMap(source) ? [source] : [];
  });
}

export const isMergeKey = (key: ParsedNode): boolean => isScalar(key) && key.type === 'PLAIN' && key.source === '<<';

/** A key as text, `8` and `true` included: the settings that matter here have words for names. */
export function keyName(key: ParsedNode, document: YamlDocument): string {
  const node = isAlias(key) ? document.resolve(key) : key;
  return isScalar(node)
    ? String((node as Scalar.Parsed).source ?? '')
    : document.text.slice(key.range[0], key.range[1]);
}

function hasUsedAnchor(node: ParsedNode | null): boolean {
  return node !== null && !isAlias(node) && node.anchor !== undefined;
}

const INTERPOLATION = /\$\{|\{\{/;

/** Text with a gap that is filled in later: inside a scalar, or a bare `{{ name }}`, which YAML takes for a map in a map. */
function isTemplate(node: ParsedNode | null, raw: string): boolean {
  if (isScalar(node)) return INTERPOLATION.test(raw);
  if (!isMap(node) || !/^\{\s*\{/.test(raw)) return false;
  const [first] = node.items as readonly { key: unknown; value: unknown }[];
  return node.items.length === 1 && isMap(first?.key) && first.value === null;
}

/** The value of one scalar node as PyYAML reads it; undefined: its tag says something that plain data cannot hold. */
function readScalar(node: Scalar.Parsed, text: string): string | number | boolean | null | undefined {
  const source = node.source;
  if (node.tag) return resolveTaggedScalar(node.tag, source);
  if (node.type === 'PLAIN') return resolvePlainScalar(source);
  const isBlock = node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED';
  // PyYAML takes no newline from a block that the end of the file cuts off.
  return isBlock && node.range[1] === text.length && !text.endsWith('\n') ? source.replace(/\n$/, '') : source;
}
