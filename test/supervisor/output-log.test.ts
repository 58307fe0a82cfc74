import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { openOutputLog } from '../../src/supervisor/output-log.ts';

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'snug-log-'));
  path = join(folder, 'output.log');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const bytes = (text: string): Buffer => Buffer.from(text);
const text = (): string => readFileSync(path, 'utf8');
const AMPLE = { limitBytes: 2 ** 20 };

it('leads each line with its stream and starts a new one where the stream changes', () => {
  const log = openOutputLog(path, AMPLE);
  log.write('stdout', bytes('epoch 1\nepo'));
  log.write('stderr', bytes(' 4%|#\r 5%|#'));
  log.write('stdout', bytes('ch 2\n'));
  log.close();
  expect(text()).toBe('out| epoch 1\nout| epo\nerr|  4%|#\r 5%|#\nout| ch 2\n');
});

it('is complete up to its limit, whatever the pieces', () => {
  const log = openOutputLog(path, { limitBytes: 420 });
  for (let line = 0; line < 20; line++) log.write('stdout', bytes(`line ${String(line).padStart(2, '0')} .......\n`));
  log.close();
  expect(text()).toBe(
    Array.from({ length: 20 }, (_, line) => `out| line ${String(line).padStart(2, '0')} .......\n`).join(''),
  );
  expect(existsSync(`${path}.end-2`)).toBe(false);
});

it('keeps head and end past its limit, and says how much the gap holds', () => {
  const log = openOutputLog(path, { limitBytes: 400 });
  for (let line = 0; line < 1000; line++) log.write('stderr', bytes(`step ${String(line).padStart(4, '0')}\n`));
  log.close();
  const whole = text();
  expect(whole.startsWith('err| step 0000\nerr| step 0001\n')).toBe(true);
  expect(whole.endsWith('err| step 0998\nerr| step 0999\n')).toBe(true);
  const [, head, left, end] = /^(.*)\nsnug\| (\d+) bytes are left out here: the log had reached its limit\n(.*)$/s.exec(
    whole,
  )!;
  // 15 bytes a line.
  expect(head!.length + Number(left) + end!.length).toBe(15_000);
  expect(head!.length + end!.length).toBeLessThanOrEqual(400);
  expect(end!.length).toBeGreaterThanOrEqual(100);
});

it('leaves readable pieces when nobody closes it, which the next one joins', () => {
  const first = openOutputLog(path, { limitBytes: 400 });
  for (let line = 0; line < 1000; line++) first.write('stdout', bytes(`step ${String(line).padStart(4, '0')}\n`));
  first.write('stdout', bytes('half a li'));
  expect(readFileSync(`${path}.end-2`, 'utf8')).toContain('half a li');
  const second = openOutputLog(path, 'again');
  second.write('stderr', bytes('saved\n'));
  second.close();
  expect(text()).toMatch(/snug\| bytes may be left out here: .*\n/);
  expect(text().endsWith('out| step 0999\nout| half a li\nerr| saved\n')).toBe(true);
});

it.each([
  ['stdout', 'li', 'ne\n', 'out| ready\nout| line\n'],
  ['stderr', 'li', 'ne\n', 'out| ready\nout| li\nerr| ne\n'],
  ['stdout', 'line\n', 'next\n', 'out| ready\nout| line\nout| next\n'],
  ['stdout', '', 'next\n', 'out| ready\nout| next\n'],
] as const)(
  'a line that was left in its middle goes on in its own stream (%s: %j + %j)',
  (stream, left, more, expected) => {
    const first = openOutputLog(path, AMPLE);
    first.write('stdout', bytes('ready\n'));
    first.write('stdout', bytes(left));
    const second = openOutputLog(path, 'again');
    second.write(stream, bytes(more));
    second.close();
    first.close();
    expect(text()).toBe(expected);
  },
);

it('left at any moment, is its head and what came last, without anything older behind it', () => {
  const line = (number: number): string => `out| step ${String(number).padStart(4, '0')} ${'.'.repeat(number % 23)}\n`;
  const written = (count: number): string => Array.from({ length: count }, (_, number) => line(number)).join('');
  for (const count of [...Array.from({ length: 80 }, (_, index) => index), 1000]) {
    const log = openOutputLog(path, { limitBytes: 800 });
    for (let number = 0; number < count; number++) log.write('stdout', bytes(line(number).slice('out| '.length)));
    openOutputLog(path, 'again').close();
    const all = written(count);
    const [head, end] = text().split(/\nsnug\| bytes may be left out here: .*\n/);
    expect(all.startsWith(head!), `head of ${count}`).toBe(true);
    if (end === undefined) expect(head).toBe(all);
    else {
      expect(all.endsWith(end), `end of ${count}`).toBe(true);
      expect(end.length).toBeGreaterThanOrEqual(Math.min(200, all.length - 400));
      expect(head!.length + end.length).toBeLessThanOrEqual(800);
    }
    log.close();
    rmSync(path);
    for (const part of [0, 1, 2]) expect(existsSync(`${path}.end-${part}`), `part ${part} of ${count}`).toBe(false);
  }
});

it('finds the newest bytes of a large end, also where a piece of the copy ends in the line behind them', () => {
  const segment = 2 ** 21;
  for (const short of [30, 45, 5000]) {
    const log = openOutputLog(path, { limitBytes: 4 * segment });
    const fill = (length: number, letter: string): void => {
      const chunk = Buffer.alloc(2 ** 16, letter);
      for (let left = length; left > 0; left -= chunk.length) log.write('stderr', chunk.subarray(0, left));
    };
    fill(2 * segment - 5, 'h');
    for (const letter of ['a', 'b', 'c']) fill(segment, letter);
    fill(2 ** 20 - short, 'd');
    openOutputLog(path, 'again').close();
    const [, end] = text().split(/\nsnug\| bytes may be left out here: .*\n/);
    expect(end!.replace(/(.)\1*/g, (run) => `${run[0]}${run.length} `).trim()).toBe(`c${segment} d${2 ** 20 - short}`);
    log.close();
  }
});

it.each(['hf_aVeryLongTokenValue', 'päss:wörd'])('keeps no secret (%s), wherever a chunk cuts it', (secret) => {
  const whole = bytes(`login with ${secret} as nobody; ${secret.slice(0, 5)} is no secret\n`);
  for (let cut = 0; cut <= whole.length; cut++) {
    const log = openOutputLog(path, { ...AMPLE, secrets: [secret, 'another-secret'] });
    log.write('stdout', whole.subarray(0, cut));
    log.write('stdout', whole.subarray(cut));
    log.close();
    const stars = '*'.repeat(bytes(secret).length);
    expect(text(), `cut at ${cut}`).toBe(`out| login with ${stars} as nobody; ${secret.slice(0, 5)} is no secret\n`);
  }
});

it('does not lose the beginning of what turned out to be no secret', () => {
  const log = openOutputLog(path, { ...AMPLE, secrets: ['token-4711'] });
  log.write('stderr', bytes('a token-47'));
  expect(text()).toBe('err| a ');
  log.write('stdout', bytes('between\n'));
  log.close();
  expect(text()).toBe('err| a \nout| between\nerr| token-47');
});

it('says why it could not be written, and takes more all the same', () => {
  writeFileSync(join(folder, 'file'), '');
  const log = openOutputLog(join(folder, 'file', 'output.log'), AMPLE);
  log.write('stdout', bytes('x\n'));
  log.close();
  expect(log.failure()).toMatch(/ENOTDIR|EEXIST/);
});
