import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  ensureBuilt,
  makeSandbox,
  ROOT,
  type Sandbox,
  SETUP_TIMEOUT_MS,
  TRAINER_TIMEOUT_MS,
} from '../support/snug-cli.ts';

/** Says on both streams what a terminal program may say: a bar that returns, colours, bytes that are no UTF-8, no newline at the end. */
const SPEAKER = `import os, sys
os.write(1, b"\\x1b[32mgreen\\x1b[0m\\r 50%|##  |\\r100%|####|\\n\\xff\\xfe raw \\xe2\\x96\\x88 no newline")
os.write(2, b"warning: \\xc3\\xa9\\rbar\\r\\nlast")
sys.exit(int(os.environ.get("SPEAKER_EXIT", "0")))
`;

describe.skipIf(process.platform === 'win32')(
  'what the trainer says and returns',
  { timeout: TRAINER_TIMEOUT_MS },
  () => {
    let sandbox: Sandbox;
    beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
    beforeEach(() => {
      sandbox = makeSandbox();
      sandbox.write('speaker.py', SPEAKER);
    });
    afterEach(() => sandbox.remove());

    it('comes through byte by byte: stdout is the trainer’s alone, stderr holds its bytes whole', async () => {
      const snug = [process.execPath, join(ROOT, 'bin', 'snug.js'), 'run', '--quiet', '--', 'python3', 'speaker.py'];
      const { exitCode } = await sandbox.startProgram(['sh', '-c', '"$@" > out.bin 2> err.bin', 'sh', ...snug]).ended;
      expect(exitCode).toBe(0);
      const bytes = (name: string) => readFileSync(join(sandbox.folder, name)).toString('latin1');
      expect(bytes('out.bin')).toBe(
        '\x1b[32mgreen\x1b[0m\r 50%|##  |\r100%|####|\n\xff\xfe raw \xe2\x96\x88 no newline',
      );
      expect(bytes('err.bin')).toContain('warning: \xc3\xa9\rbar\r\nlast');
    });

    it('what snug says in the middle of a bar stands on a line of its own, also as JSON', async () => {
      const bar =
        'import signal, sys, time; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(0)); sys.stderr.write("\\r 40%|##"); sys.stderr.flush(); time.sleep(600)';
      const run = sandbox.start(['run', '--json', '--', 'python3', '-c', bar]);
      await run.seen(/\r 40%/);
      run.signal('SIGUSR1');
      const { stderr, exitCode } = await run.ended;
      expect(exitCode).toBe(0);
      expect(stderr).toContain('\r 40%|##\n{"event":"signal-forwarded"');
      const events = stderr.split('\n').filter((line) => line.startsWith('{'));
      expect(events.map((line) => (JSON.parse(line) as { event?: string }).event)).toContain('attempt-ended');
    });

    it('a command that is no trainer is started with a word and not lectured', async () => {
      const { stdout, stderr, exitCode } = await sandbox.run(['run', '--', 'echo', 'hi']);
      expect({ stdout, exitCode }).toEqual({ stdout: 'hi\n', exitCode: 0 });
      expect(stderr).toMatch(/^snug: echo is no trainer whose settings are known here: it starts as it came/);
      expect(stderr).not.toMatch(/error\[|warning\[/);
    });

    it('a program that may not be executed: exit code 126, and no word of memory', async () => {
      sandbox.write('plain.sh', 'echo never\n');
      const { stderr, exitCode } = await sandbox.run(['run', '--', './plain.sh']);
      expect(exitCode).toBe(126);
      expect(stderr).toMatch(/attempt 1 could not be started/);
      expect(stderr).not.toMatch(/memory/);
    });

    it.each([7, 11, 13, 70])(
      'exit code %i of the trainer is ours, and the last line says whose it is',
      async (code) => {
        const { exitCode, stderr } = await sandbox.run(['run', '--', 'python3', 'speaker.py'], {
          SPEAKER_EXIT: String(code),
        });
        expect(exitCode).toBe(code);
        expect(stderr.trimEnd().split('\n').at(-1)).toMatch(new RegExp(`exit code ${code}, the trainer's own`));
        expect(sandbox.onlyRun().attempts).toHaveLength(1);
      },
    );
  },
);
