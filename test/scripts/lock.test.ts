import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { withLock } from '../../scripts/lock.mjs';

/** Above the largest pid Linux gives out. */
const NO_SUCH_PID = 2 ** 22 + 1;

describe('scripts/lock.mjs', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'snug-lock-test-'));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  it('lets one in at a time and leaves nothing behind, also after a throw', async () => {
    const lock = join(folder, 'lock');
    const inside: string[] = [];
    const work = (name: string) => async () => {
      inside.push(`${name} in`);
      await new Promise((done) => setTimeout(done, 30));
      inside.push(`${name} out`);
      if (name === 'a') throw new Error('a fails');
    };
    const outcomes = await Promise.allSettled([
      withLock(lock, work('a'), { pollMs: 5 }),
      withLock(lock, work('b'), { pollMs: 5 }),
    ]);
    expect(inside).toEqual(['a in', 'a out', 'b in', 'b out']);
    expect(outcomes.map((outcome) => outcome.status)).toEqual(['rejected', 'fulfilled']);
    expect(existsSync(lock)).toBe(false);
  });

  it('takes over from a holder that is gone, waits for one that lives', async () => {
    const lock = join(folder, 'lock');
    mkdirSync(lock);
    writeFileSync(join(lock, 'pid'), String(NO_SUCH_PID));
    expect(await withLock(lock, () => 'mine now')).toBe('mine now');

    mkdirSync(lock);
    writeFileSync(join(lock, 'pid'), String(process.pid));
    let waited = 0;
    setTimeout(() => rmSync(lock, { recursive: true }), 60);
    expect(await withLock(lock, () => 'after you', { pollMs: 5, onWait: () => waited++ })).toBe('after you');
    expect(waited).toBe(1);
  });
});
