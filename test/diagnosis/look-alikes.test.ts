import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { classify, createLineWatcher } from '../../src/diagnosis/index.ts';
import { attempt } from './texts.ts';

const FOLDER = join(import.meta.dirname, '..', 'fixtures', 'look-alikes');
const names = readdirSync(FOLDER).map((name) => name.replace(/\.txt$/, ''));
const bug =
  'Traceback (most recent call last):\n  File "tune.py", line 3, in main\n    start()\nKeyError: \'window\'\n';
const MEMORY = ['vram', 'host_ram', 'shm'];

it('are at least forty', () => {
  expect(names.length).toBeGreaterThanOrEqual(40);
});

it.each(names)('%s raises no alarm while a run goes on, and is not blamed when it ends of something else', (name) => {
  const text = readFileSync(join(FOLDER, `${name}.txt`), 'utf8');
  for (const stream of ['stdout', 'stderr'] as const) {
    const watcher = createLineWatcher();
    expect(watcher.push(stream, Buffer.from(`step 1\n${text}`))).toBeUndefined();
    expect(watcher.fatal()).toBeUndefined();
    watcher.end();
    expect(watcher.fatal()).toBeUndefined();
  }
  expect(classify(attempt(text, { exitCode: 0 }))).toBeUndefined();
  const failed = classify(attempt(`${text}${bug}`, { exitCode: 1 }));
  expect(MEMORY).not.toContain(failed?.resource);
});
