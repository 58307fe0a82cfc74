import { error, fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { FileReference } from '../dialect.ts';
import type { FileKey } from '../hf-argparser/values.ts';
import { readYaml, type YamlHazard } from '../yaml-read.ts';

export interface ConfigFile {
  readonly reference: FileReference;
  /** Top-level keys but `env`. */
  readonly keys: ReadonlyMap<string, FileKey>;
  /** The `env:` map, exported before anything else. */
  readonly env: Readonly<Record<string, string>>;
  /** Values that stand somewhere else than they seem to. */
  readonly unread: readonly Unread[];
}

const WORDS: Readonly<Record<YamlHazard, string>> = {
  alias: 'an alias',
  anchor: 'an anchor that other keys use',
  merge: 'a merge key',
  duplicate: 'a duplicate key',
  interpolation: 'an interpolation',
  tag: 'a tag',
};

/** Reads `--config FILE` as TrlParser does: a flat map whose keys become the defaults of the flags. */
export function readConfigFile(argv: readonly string[], index: number, context: ReadContext): Result<ConfigFile> {
  const path = argv[index]!;
  const source = context.source(path);
  if (!source.ok) return source;
  const yaml = readYaml(source.value.text, path);
  if (!yaml.ok) return yaml;
  const top = yaml.value.entries.filter((entry) => entry.keyPath.length === 1);
  const environment = yaml.value.get('env');
  if (
    environment &&
    (environment.value === null || typeof environment.value !== 'object' || Array.isArray(environment.value))
  ) {
    return fail(
      error('bad-value', 'env is not a map of variables', {
        location: `${path}:${environment.line}`,
        help: 'write it as NAME: value lines below env:',
      }),
    );
  }
  const keys = new Map<string, FileKey>();
  const unread: Unread[] = [];
  for (const entry of top) {
    const [key] = entry.keyPath as [string];
    if (key === 'env') continue;
    const hazard = entry.hazards[0];
    keys.set(key, { value: entry.value, line: entry.line, ...(hazard ? { hazard: WORDS[hazard] } : {}) });
    // An anchor does not hide a value, and a gap is told by whoever asks for the value (a chat template is full of them).
    if (hazard && hazard !== 'anchor' && hazard !== 'interpolation') {
      unread.push({ key, origin: { kind: 'file', path, line: entry.line }, reason: REASONS[hazard] });
    }
  }
  const env = Object.fromEntries(
    Object.entries((environment?.value ?? {}) as Record<string, unknown>).map(([name, value]) => [
      name,
      pythonText(value),
    ]),
  );
  const reference: FileReference = {
    source: source.value,
    format: 'yaml',
    pointer: { kind: 'argv', index, before: '' },
  };
  return ok({ reference, keys, env, unread });
}

const REASONS: Readonly<Record<Exclude<YamlHazard, 'anchor' | 'interpolation'>, string>> = {
  alias: 'alias',
  merge: 'merge-key',
  duplicate: 'duplicate-key',
  tag: 'tag',
};

/** Python's `str()` of a YAML value: TrlParser exports `str(value)`. */
function pythonText(value: unknown): string {
  if (value === true) return 'True';
  if (value === false) return 'False';
  return value === null || value === undefined ? 'None' : String(value);
}
