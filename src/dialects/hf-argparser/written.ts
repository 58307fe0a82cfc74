import type { SourceEdit, Written } from '../dialect.ts';

export const wrote = (...edits: readonly SourceEdit[]): Written => ({ ok: true, edits });
export const cannot = (reason: string): Written => ({ ok: false, reason });

/** All edits together, or the first reason why not. */
export function together(...parts: readonly Written[]): Written {
  const refused = parts.find((part) => !part.ok);
  return refused ?? wrote(...parts.flatMap((part) => (part.ok ? part.edits : [])));
}
