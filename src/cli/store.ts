import { mkdirSync } from 'node:fs';
import { sync as writeFileAtomicSync } from 'write-file-atomic';
import type { ReadOutcome, StorePort } from '../core/index.ts';

const attempt = (action: () => void): ReadOutcome<undefined> => {
  try {
    action();
    return { ok: true, value: undefined };
  } catch (failure) {
    return { ok: false, code: (failure as NodeJS.ErrnoException).code ?? 'EIO' };
  }
};

/** The run folder on disk. */
export const createStore = (): StorePort => ({
  makeFolder: (path) => attempt(() => mkdirSync(path, { recursive: true })),
  writeAtomic: (path, text) => attempt(() => writeFileAtomicSync(path, text)),
});
