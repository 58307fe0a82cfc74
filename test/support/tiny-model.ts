import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { withLock } from '../../scripts/lock.mjs';
import { hashOf } from '../../scripts/python-env.mjs';
import { ROOT, type Sandbox } from './snug-cli.ts';

const SCRIPT = join(ROOT, 'test', 'support', 'tiny-model.py');

/** Puts `model/` and `data/` of tiny-model.py into a sandbox; made once and kept until the script changes. */
export async function addTinyModel(sandbox: Sandbox, python: string): Promise<void> {
  const cache = join(ROOT, '.test-tmp');
  const made = join(cache, `tiny-model-${hashOf(readFileSync(SCRIPT)).slice(0, 12)}`);
  mkdirSync(cache, { recursive: true });
  await withLock(`${made}.lock`, () => {
    if (existsSync(made)) return;
    const unfinished = `${made}.unfinished`;
    rmSync(unfinished, { recursive: true, force: true });
    const done = spawnSync(python, [SCRIPT, unfinished], { encoding: 'utf8', env: { ...sandbox.env } });
    if (done.status !== 0) throw new Error(`tiny-model.py failed:\n${done.stderr}`);
    renameSync(unfinished, made);
  });
  cpSync(made, sandbox.folder, { recursive: true });
}
