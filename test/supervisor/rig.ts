import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, expect } from 'vitest';
import type { Evidence } from '../../src/diagnosis/index.ts';
import { type AttemptRequest, type RunningAttempt, startAttempt } from '../../src/supervisor/index.ts';

export const PUPPET = resolve(import.meta.dirname, '../fixtures/supervisor/puppet.mjs');
const MARK = 'SNUG_TEST_MARK';
const opened: Rig[] = [];

export type Action = readonly [string, ...unknown[]];

/** A started attempt, its two streams, and its files. */
export interface Rig {
  readonly attempt: RunningAttempt;
  readonly folder: string;
  readonly stdout: Reader;
  readonly stderr: Reader;
  readonly evidence: () => Promise<Evidence>;
  readonly log: () => string;
  /** Lets a puppet that awaits this pipe go on. */
  readonly release: (name: string) => void;
  readonly mark: string;
}

/** Gathers a stream and waits for words in it. */
export interface Reader {
  readonly stream: PassThrough;
  readonly bytes: () => Buffer;
  readonly until: (text: string) => Promise<void>;
}

export function createReader(): Reader {
  const stream = new PassThrough();
  const chunks: Buffer[] = [];
  const waiting = new Set<() => void>();
  stream.on('data', (chunk: Buffer) => {
    chunks.push(chunk);
    for (const look of waiting) look();
  });
  const bytes = (): Buffer => Buffer.concat(chunks);
  return {
    stream,
    bytes,
    until: (text) =>
      new Promise((done) => {
        const look = (): void => {
          if (!bytes().includes(text)) return;
          waiting.delete(look);
          done();
        };
        waiting.add(look);
        look();
      }),
  };
}

/** Starts a program with quick timings; `overrides` change the request. */
export function start(argv: readonly string[], overrides: Partial<AttemptRequest> = {}): Rig {
  const folder = mkdtempSync(join(tmpdir(), 'snug-supervisor-'));
  const mark = randomUUID();
  const stdout = createReader();
  const stderr = createReader();
  const attempt = startAttempt({
    argv,
    env: { PATH: process.env.PATH, [MARK]: mark, SNUG_TEST_FOLDER: folder, ...overrides.env },
    cwd: folder,
    logPath: join(folder, 'output.log'),
    samplesPath: join(folder, 'samples.jsonl'),
    stdout: stdout.stream,
    stderr: stderr.stream,
    sampleVram: undefined,
    sampleEveryMs: 50,
    fatalLineGraceMs: 100,
    stopGraceMs: 5000,
    drainMs: 300,
    foreground: false,
    ...Object.fromEntries(Object.entries(overrides).filter(([key]) => key !== 'env')),
  });
  const rig: Rig = {
    attempt,
    folder,
    stdout,
    stderr,
    evidence: () => attempt.ended,
    log: () => readFileSync(join(folder, 'output.log'), 'utf8'),
    release: (name) => writeFileSync(join(folder, name), '!'),
    mark,
  };
  opened.push(rig);
  return rig;
}

/** Starts a program that does what `script` says. */
export const puppet = (script: readonly Action[], overrides: Partial<AttemptRequest> = {}): Rig =>
  start([process.execPath, PUPPET, JSON.stringify(script)], overrides);

/** A program that prints `text` on stderr and ends with `code`: one that dies of something, in two milliseconds. */
export function lastWords(text: string, code: number): Rig {
  // An argument cannot hold every byte that a program can print.
  const octal = [...Buffer.from(text)].map((byte) => `\\0${byte.toString(8).padStart(3, '0')}`).join('');
  return start(['/bin/sh', '-c', `printf '%b\\n' "$1" >&2; exit "$2"`, 'sh', octal, String(code)]);
}

/** A pipe in a fresh folder that a puppet can await. */
export function createGate(): { path: string; open: () => void } {
  const folder = mkdtempSync(join(tmpdir(), 'snug-gate-'));
  const path = join(folder, 'gate');
  execFileSync('mkfifo', [path]);
  return { path, open: () => writeFileSync(path, '!') };
}

/** Pids whose environment carries the mark, zombies aside. */
export function pidsWith(mark: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
        const state = stat.slice(stat.lastIndexOf(')') + 2)[0];
        return state !== 'Z' && readFileSync(`/proc/${pid}/environ`, 'latin1').includes(`${MARK}=${mark}`);
      } catch {
        return false;
      }
    })
    .map(Number);
}

afterEach(async () => {
  for (const rig of opened.splice(0)) {
    await rig.attempt.ended;
    const left = pidsWith(rig.mark);
    for (const pid of left) process.kill(pid, 'SIGKILL');
    rmSync(rig.folder, { recursive: true, force: true });
    expect(left, 'processes left behind').toEqual([]);
  }
});
