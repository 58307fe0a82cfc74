import type { BareFile } from '../dialect.ts';
import { nativeSchema } from './schema.ts';

/** How a native config is known. */
export const NATIVE_SIGN = 'command, or model with the settings of the run';

/**
 * Whether a file given alone is a native config. `maybe`: most of its keys are ours (one of them may be a slip of the pen,
 * which the native reader names), but a trainer that knows it better goes first.
 */
export function isNativeFile({ path, values }: BareFile): 'yes' | 'maybe' | 'no' {
  if (/(?:^|\/)snug\.ya?ml$/.test(path) || values.size === 0) return 'yes';
  const known = new Set(Object.keys(nativeSchema().shape));
  const own = [...values.keys()].filter((key) => known.has(key));
  if (typeof values.get('command') === 'string') return 'yes';
  const named = typeof values.get('model') === 'string' || values.has('model_config');
  if (named && own.length === values.size) return 'yes';
  return own.length > 0 && own.length * 2 >= values.size ? 'maybe' : 'no';
}
