import type { Diagnostic } from './diagnostic.ts';

/** Expected trouble as a value: either what was asked for, or every problem found on the way (never only the first). */
export type Result<T, E = Diagnostic[]> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: E };

export const ok = <T>(value: T): Result<T, never> => ({ ok: true, value });
export const err = <E>(error: E): Result<never, E> => ({ ok: false, error });
/** The usual failure: one or more diagnostics. */
export const fail = (...diagnostics: Diagnostic[]): Result<never> => ({ ok: false, error: diagnostics });

/** Ends a switch over a tagged union; a new member then fails to compile, and a value from outside throws as a bug of ours. */
export function assertNever(value: never): never {
  throw new Error(`unexpected value ${JSON.stringify(value)}`);
}
