import { error, fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { FileReference } from '../dialect.ts';
import { readFlatConfig } from '../flat-config.ts';
import type { FileKey } from '../hf-argparser/values.ts';

export interface ConfigFile {
  readonly reference: FileReference;
  /** Top-level keys but `env`. */
  readonly keys: ReadonlyMap<string, FileKey>;
  /** The `env:` map, exported before anything else. */
  readonly env: Readonly<Record<string, string>>;
  /** Values that stand somewhere else than they seem to. */
  readonly unread: readonly Unread[];
}

/** Reads `--config FILE` as TrlParser does: a flat map whose keys become the defaults of the flags. */
export function readConfigFile(argv: readonly string[], index: number, context: ReadContext): Result<ConfigFile> {
  const path = argv[index]!;
  const flat = readFlatConfig(path, { kind: 'argv', index, before: '' }, context);
  if (!flat.ok) return flat;
  const { reference, unread } = flat.value;
  const keys = new Map(flat.value.keys);
  const environment = keys.get('env');
  keys.delete('env');
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
  const env = Object.fromEntries(
    Object.entries((environment?.value ?? {}) as Record<string, unknown>).map(([name, value]) => [
      name,
      pythonText(value),
    ]),
  );
  return ok({ reference, keys, env, unread: unread.filter((each) => each.key !== 'env') });
}

/** Python's `str()` of a YAML value: TrlParser exports `str(value)`. */
function pythonText(value: unknown): string {
  if (value === true) return 'True';
  if (value === false) return 'False';
  return value === null || value === undefined ? 'None' : String(value);
}
