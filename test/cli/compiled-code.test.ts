import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import module from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startProcess } from '../support/running.ts';
import { ensureBuilt, ROOT, SETUP_TIMEOUT_MS } from '../support/snug-cli.ts';

const KEPT = `compiled-${process.version}-${process.arch}`;

// Where Node keeps compiled code itself, nothing of this is there.
describe.skipIf('enableCompileCache' in module)('starting from compiled code', { timeout: 60_000 }, () => {
  let copy: string;
  let kept: string;
  const start = async (...before: string[]) => {
    const argv = [process.execPath, ...before, join(copy, 'bin', 'snug.js'), 'check', '--gpu', '9GiB'];
    const { exitCode, stdout, stderr } = await startProcess(
      [...argv, join(ROOT, 'examples', 'pocket', 'snug.yaml')],
      copy,
      process.env as Record<string, string>,
    ).ended;
    // What the machine has left differs from one moment to the next.
    return { exitCode, stdout: stdout.replace(/^ *host RAM .*$/m, ''), stderr };
  };

  beforeAll(async () => {
    await ensureBuilt();
    copy = mkdtempSync(join(tmpdir(), 'snug-compiled-'));
    kept = join(copy, 'dist', KEPT);
    for (const folder of ['bin', 'dist']) cpSync(join(ROOT, folder), join(copy, folder), { recursive: true });
    // Tells of every script that came with compiled code whether V8 took it.
    writeFileSync(
      join(copy, 'listen.cjs'),
      `const vm = require('node:vm');
       vm.Script = class extends vm.Script {
         constructor(source, options) {
           super(source, options);
           if (options.cachedData) console.error(this.cachedDataRejected ? 'rejected' : 'taken');
         }
       };`,
    );
  }, SETUP_TIMEOUT_MS);
  afterAll(() => rmSync(copy, { recursive: true, force: true }));

  it('V8 takes what was kept after the build, of every file that a check loads', async () => {
    const { stderr } = await start('--require', join(copy, 'listen.cjs'));
    const told = stderr.trim().split('\n');
    expect(told.length).toBeGreaterThan(5);
    expect(new Set(told)).toEqual(new Set(['taken']));
  });

  it('says the same where it was broken off, made for other code, or is not there', async () => {
    const whole = await start();
    expect([whole.exitCode, whole.stderr]).toEqual([10, '']);
    const [first, ...others] = readdirSync(kept);
    for (const name of others) writeFileSync(join(kept, name), readFileSync(join(kept, name)).subarray(0, 900));
    writeFileSync(join(kept, 'snug.js'), readFileSync(join(kept, first!)));
    expect(await start()).toEqual(whole);
    rmSync(kept, { recursive: true });
    mkdirSync(kept);
    expect(await start()).toEqual(whole);
  });
});
