import { ok, type Result } from '../core/index.ts';
import type { ReadContext, Unread } from './contract.ts';
import type { FileReference, Pointer } from './dialect.ts';
import type { FileKey } from './hf-argparser/values.ts';
import { lineAt, parseJson } from './json-text.ts';
import { readYaml, type YamlFile, type YamlHazard } from './yaml-read.ts';

/** A config whose keys at the top are the settings; what a key holds may be a map or a list. */
export interface FlatConfig {
  readonly reference: FileReference;
  readonly keys: ReadonlyMap<string, FileKey>;
  /** Values that stand somewhere else than they seem to. */
  readonly unread: readonly Unread[];
  /** For what stands deeper; undefined: the file is JSON. */
  readonly yaml?: YamlFile;
}

const WORDS: Readonly<Record<YamlHazard, string>> = {
  alias: 'an alias',
  anchor: 'an anchor that other keys use',
  merge: 'a merge key',
  duplicate: 'a duplicate key',
  interpolation: 'an interpolation',
  tag: 'a tag',
};

/** An anchor does not hide a value, and a gap is told by whoever asks for the value (a chat template is full of them). */
const REASONS: Readonly<Partial<Record<YamlHazard, string>>> = {
  alias: 'alias',
  merge: 'merge-key',
  duplicate: 'duplicate-key',
  tag: 'tag',
};

/** Reads a YAML file, or JSON where its name ends so. `pointer`: how the launch names it. */
export function readFlatConfig(path: string, pointer: Pointer, context: ReadContext): Result<FlatConfig> {
  const source = context.source(path);
  if (!source.ok) return source;
  const keys = new Map<string, FileKey>();
  if (/\.json$/i.test(path)) {
    const node = parseJson(source.value.text, path);
    if (!node.ok) return node;
    for (const { key, keyStart, node: inner } of node.value.members ?? []) {
      const twice = keys.has(key) ? { hazard: WORDS.duplicate } : {};
      keys.set(key, { value: inner.value, line: lineAt(source.value.text, keyStart), ...twice });
    }
    return ok({ reference: { source: source.value, format: 'json', pointer }, keys, unread: [] });
  }
  const yaml = readYaml(source.value.text, path);
  if (!yaml.ok) return yaml;
  const unread: Unread[] = [];
  for (const { keyPath, value, line, hazards } of yaml.value.entries) {
    if (keyPath.length !== 1) continue;
    const [key] = keyPath as [string];
    const [hazard] = hazards;
    keys.set(key, { value, line, ...(hazard ? { hazard: WORDS[hazard] } : {}) });
    const reason = hazard && REASONS[hazard];
    if (reason) unread.push({ key, origin: { kind: 'file', path, line }, reason });
  }
  return ok({ reference: { source: source.value, format: 'yaml', pointer }, keys, unread, yaml: yaml.value });
}
