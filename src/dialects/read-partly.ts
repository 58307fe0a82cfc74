import { type Diagnostic, ok } from '../core/index.ts';
import type { Origin, TrainingSpec } from '../spec/index.ts';
import type { LaunchSource, ReadContext } from './contract.ts';
import type { Claim, Dialect, Position, Reading } from './dialect.ts';

export interface PartReading {
  /** undefined: the dialect can make nothing of its part even without the files. */
  readonly reading: Reading | undefined;
  readonly errors: readonly Diagnostic[];
}

/**
 * Reads a dialect's part; where a file of it is missing or broken, reads it again as if that file were empty, so that the
 * command line still counts. What would then be a default could stand in the file, and is unknown.
 */
export function readPartly(dialect: Dialect, claim: Claim, position: Position, context: ReadContext): PartReading {
  const first = dialect.read(claim, position, context);
  if (first.ok) return { reading: first.value, errors: [] };
  const emptied = new Set<string>();
  const again = dialect.read(claim, position, withoutFiles(context, first.error, emptied, dialect.standIn ?? ''));
  if (!again.ok || emptied.size === 0) return { reading: undefined, errors: first.error };
  const own = (again.value.files ?? []).find((file) => emptied.has(file.source.path));
  const reading = own ? { ...again.value, spec: unknownDefaults(again.value.spec, own.source.path) } : again.value;
  return { reading, errors: first.error };
}

/** A context in which every file that an error is about is there and empty. Scripts are no part of a config. */
function withoutFiles(
  context: ReadContext,
  errors: readonly Diagnostic[],
  emptied: Set<string>,
  standIn: string,
): ReadContext {
  const places = errors.map((each) => each.location ?? '');
  const blamed = (path: string): boolean => places.some((place) => place === path || place.startsWith(`${path}:`));
  return {
    ...context,
    source: (path) => {
      const found = context.source(path);
      if (path.endsWith('.py') || (found.ok && !blamed(path))) return found;
      emptied.add(path);
      const absolutePath = path.startsWith('/') ? path : `${context.cwd}/${path}`;
      const source: LaunchSource = { path, absolutePath, text: path.endsWith('.json') ? '{}' : standIn, missing: true };
      return ok(source);
    },
  };
}

function unknownDefaults(spec: TrainingSpec, path: string): TrainingSpec {
  const origin: Origin = { kind: 'file', path, line: 1 };
  return Object.fromEntries(
    Object.entries(spec).map(([name, setting]) => [
      name,
      setting?.origin.kind === 'default' ? { value: null, origin } : setting,
    ]),
  );
}
