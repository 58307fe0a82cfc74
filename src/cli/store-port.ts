import { mkdirSync, rmSync, symlinkSync } from 'node:fs';
import writeFileAtomic from 'write-file-atomic';
import type { ReadOutcome, StorePort } from '../core/index.ts';

function attempt(write: () => void): ReadOutcome<undefined> {
  try {
    write();
    return { ok: true, value: undefined };
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    if (code === undefined) throw thrown;
    return { ok: false, code };
  }
}

/** `StorePort` over the real file system. */
export const storePort: StorePort = {
  makeFolder: (path) => attempt(() => mkdirSync(path, { recursive: true })),
  writeAtomic: (path, text) => attempt(() => writeFileAtomic.sync(path, text)),
  link: (target, path) => attempt(() => symlinkSync(target, path)),
  remove: (path) => attempt(() => rmSync(path, { force: true })),
};
