import type { core } from 'zod/mini';
import { type Diagnostic, error } from '../../core/index.ts';
import { didYouMean } from '../did-you-mean.ts';
import { nativeSchema } from './schema.ts';

/** Where a key stands, as messages name it; undefined where there is no file. */
export type Locate = (keyPath: readonly string[]) => string | undefined;

/** Every problem of a config, with its line and the way out. */
export function nativeProblems(issues: readonly core.$ZodIssue[], value: unknown, locate: Locate): Diagnostic[] {
  return issues.flatMap((issue) => describe(issue, value, locate));
}

function describe(issue: core.$ZodIssue, value: unknown, locate: Locate): Diagnostic[] {
  const keyPath = issue.path.map(String);
  const at = (path: readonly string[]): { location?: string } => {
    const location = locate(path);
    return location === undefined ? {} : { location };
  };
  if (issue.code === 'unrecognized_keys') {
    return issue.keys.map((key) =>
      error('unknown-key', `unknown key ${[...keyPath, key].join('.')}`, {
        ...at([...keyPath, key]),
        help: didYouMean(key, knownKeys(keyPath)),
      }),
    );
  }
  const given = keyPath.reduce<unknown>((inner, key) => (inner as Record<string, unknown> | null)?.[key], value);
  const name = keyPath.join('.') || 'the config';
  const expected = expectation(issue);
  const help =
    issue.code === 'invalid_value' && typeof given === 'string'
      ? didYouMean(given, issue.values.map(String))
      : `give ${name} ${expected}`;
  return [error('bad-value', `${name} is ${show(given)}, expected ${expected}`, { ...at(keyPath), help })];
}

/** The schema's own words where it has some (`expected …`), else zod's kinds in ours. */
function expectation(issue: core.$ZodIssue): string {
  if (issue.message.startsWith('expected ')) return issue.message.slice('expected '.length);
  switch (issue.code) {
    case 'invalid_value':
      return issue.values.length > 12 ? 'a known name' : `one of ${issue.values.map(String).join(', ')}`;
    case 'too_small':
      return issue.origin === 'string' ? 'a word' : `a number from ${issue.minimum}`;
    case 'too_big':
      return `a number up to ${issue.maximum}`;
    case 'invalid_type':
      return TYPES[issue.expected] ?? issue.expected;
    default:
      return 'something else';
  }
}

const TYPES: Readonly<Record<string, string>> = {
  number: 'a number',
  string: 'a word',
  boolean: 'true or false',
  object: 'a map of keys',
  record: 'a map of keys',
  array: 'a list',
};

function show(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'empty';
  const text = typeof value === 'string' ? `"${value}"` : JSON.stringify(value);
  return text.length > 60 ? `${text.slice(0, 57)}…` : text;
}

/** Keys that stand at a place of the schema, through defaults, options and preprocessing. */
function knownKeys(keyPath: readonly string[]): readonly string[] {
  let schema: unknown = nativeSchema();
  for (const key of keyPath) schema = shapeOf(schema)?.[key];
  return Object.keys(shapeOf(schema) ?? {}).filter((key) => key !== 'id');
}

function shapeOf(schema: unknown): Record<string, unknown> | undefined {
  const { def } = (schema ?? {}) as { def?: { shape?: Record<string, unknown>; innerType?: unknown; out?: unknown } };
  if (!def) return undefined;
  return def.shape ?? shapeOf(def.innerType ?? def.out);
}
