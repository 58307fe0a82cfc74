import { settingKey } from '../../spec/index.ts';

/** JSON with every key in snake_case, to any depth; what is not known becomes null. */
export function snakeCased(value: unknown): unknown {
  if (value === undefined || value === null) return null;
  if (Array.isArray(value)) return value.map(snakeCased);
  if (typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [settingKey(key), snakeCased(inner)]));
}
