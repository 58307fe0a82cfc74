import { lstatSync, readdirSync } from 'node:fs';
import { join } from 'node:path';

/** Checkpoints of sharded states lie three folders deep. */
const DEPTH = 3;
const MOST_FILES = 5000;
/** A file written this lately is taken for one that is being written. */
const FRESH_MS = 3000;

/** States and weights. Logs grow as long as a run does, also when it does not listen. */
const SAVED = /\.(?:safetensors|bin|pt|pth|distcp|ckpt|npz|gguf|tmp)$/i;

interface Look {
  readonly bytes: number;
  readonly files: number;
  readonly newestMs: number;
}

function lookAt(folder: string): Look {
  let bytes = 0;
  let files = 0;
  let newestMs = 0;
  const visit = (path: string, depth: number): void => {
    let names: string[];
    try {
      names = readdirSync(path);
    } catch {
      return;
    }
    for (const name of names) {
      if (files >= MOST_FILES) return;
      const stats = lstatSync(join(path, name), { throwIfNoEntry: false });
      if (stats?.isFile() && SAVED.test(name)) {
        files++;
        bytes += stats.size;
        newestMs = Math.max(newestMs, stats.mtimeMs);
      } else if (stats?.isDirectory() && depth > 1) visit(join(path, name), depth - 1);
    }
  };
  visit(folder, DEPTH);
  return { bytes, files, newestMs };
}

/**
 * Whether something is being saved in an output folder: since the last question it has grown or changed; at the first one, whether a
 * file is fresh. A kill now would leave a checkpoint cut off.
 */
export function createSaveWatch(outputDir: string): () => boolean {
  let before: Look | undefined;
  return () => {
    const now = lookAt(outputDir);
    const saving = before
      ? now.bytes !== before.bytes || now.files !== before.files || now.newestMs !== before.newestMs
      : Date.now() - now.newestMs < FRESH_MS;
    before = now;
    return saving;
  };
}
