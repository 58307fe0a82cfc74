import { closeSync, existsSync, mkdtempSync, readdirSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { makeOutputPipes } from '../../src/supervisor/output-pipes.ts';
import { start } from './rig.ts';

it.skipIf(process.platform !== 'linux')('makes two pipes and leaves no name of them', () => {
  const folder = mkdtempSync(join(tmpdir(), 'snug-pipes-test-'));
  const names = (): string[] => readdirSync(folder);
  const before = process.env.TMPDIR;
  process.env.TMPDIR = folder;
  try {
    const { stdout, stderr } = makeOutputPipes('/nowhere')!;
    writeSync(stderr.writeFd, 'to the one');
    writeSync(stdout.writeFd, 'to the other');
    const piece = Buffer.alloc(64);
    expect(piece.toString('latin1', 0, readSync(stdout.readFd, piece))).toBe('to the other');
    expect(piece.toString('latin1', 0, readSync(stderr.readFd, piece))).toBe('to the one');
    for (const { readFd, writeFd } of [stdout, stderr]) {
      closeSync(writeFd);
      expect(readSync(readFd, piece)).toBe(0);
      closeSync(readFd);
    }
    expect(names()).toEqual([]);
    process.env.TMPDIR = join(folder, 'gone');
    expect(makeOutputPipes('/nowhere')).toBeUndefined();
    const elsewhere = makeOutputPipes(folder)!;
    for (const { readFd, writeFd } of [elsewhere.stdout, elsewhere.stderr]) {
      closeSync(readFd);
      closeSync(writeFd);
    }
    expect(names()).toEqual([]);
  } finally {
    if (before === undefined) delete process.env.TMPDIR;
    else process.env.TMPDIR = before;
    rmSync(folder, { recursive: true });
  }
  expect(existsSync(folder)).toBe(false);
});

it.skipIf(process.platform !== 'linux')('lets a program open its own output by name, as under a shell', async () => {
  const rig = start([
    'sh',
    '-c',
    'echo one > /dev/stderr; echo two | tee /dev/stderr > /dev/null; echo three > /dev/stdout',
  ]);
  expect((await rig.evidence()).exitCode).toBe(0);
  expect(rig.stderr.bytes().toString()).toBe('one\ntwo\n');
  expect(rig.stdout.bytes().toString()).toBe('three\n');
});

it('runs on sockets where no pipe can be made', async () => {
  const before = process.env.PATH;
  const { PATH } = process.env;
  process.env.PATH = '/nowhere';
  try {
    const rig = start(['/bin/sh', '-c', 'echo out; echo err >&2; exit 3'], { env: { PATH } });
    expect((await rig.evidence()).exitCode).toBe(3);
    expect(rig.stdout.bytes().toString()).toBe('out\n');
    expect(rig.stderr.bytes().toString()).toBe('err\n');
  } finally {
    process.env.PATH = before;
  }
});
