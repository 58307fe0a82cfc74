import type { ModelDescription } from '../model/index.ts';

/** What `make` finds of a description, found once for each: many estimates are of one model. */
export function perModel<T>(make: (description: ModelDescription) => T): (description: ModelDescription) => T {
  const known = new WeakMap<ModelDescription, { readonly found: T }>();
  return (description) => {
    let entry = known.get(description);
    if (!entry) {
      entry = { found: make(description) };
      known.set(description, entry);
    }
    return entry.found;
  };
}
