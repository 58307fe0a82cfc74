import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { classify } from '../../src/diagnosis/index.ts';
import { newText } from '../diagnosis/texts.ts';
import { createGate, PUPPET, pidsWith, puppet, start } from './rig.ts';

const OOM = `torch.OutOfMemoryError: ${newText()}\n`;

const folders: string[] = [];
const freshFolder = (): string => {
  folders.push(mkdtempSync(join(tmpdir(), 'snug-output-')));
  return folders.at(-1)!;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

it.each(['SIGKILL', 'SIGBUS', 'SIGABRT', 'SIGSEGV'] as const)(
  'a leader that dies of %s without a word leaves no worker behind, not even one in a session of its own',
  async (signal) => {
    const rig = puppet(
      [
        ['child', [['on', 'SIGTERM', 'deaf\n'], ['out', 'working\n'], ['forever']], { session: true }],
        ['child', [['child', [['out', 'nested\n'], ['forever']], { session: true }], ['forever']]],
        ['forever'],
      ],
      { stopGraceMs: 200, drainMs: 100 },
    );
    await Promise.all([rig.stdout.until('working'), rig.stdout.until('nested')]);
    process.kill(rig.attempt.pid!, signal);
    const evidence = await rig.evidence();
    expect(evidence).toMatchObject({ exitCode: undefined, signal, stoppedBecause: undefined });
    expect(evidence.treePids).toHaveLength(4);
    expect(classify(evidence)?.resource).not.toBe('vram');
  },
);

it.each([
  ['a full disk', 'open("/dev/full", "w").write("x" * 9999 + "\\n")', { exitCode: 1 }, 'disk'],
  [
    'RAM that is not given',
    'import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); bytearray(1 << 30)',
    { exitCode: 1 },
    'host_ram',
  ],
  [
    'a page of shared memory that is not there',
    'import mmap, tempfile\nf = tempfile.TemporaryFile()\nf.truncate(8192)\nm = mmap.mmap(f.fileno(), 8192)\nf.truncate(0)\nm[5000]',
    { signal: 'SIGBUS' },
    'shm',
  ],
  ['an abort', 'import os; os.abort()', { signal: 'SIGABRT' }, 'unknown'],
  ['a wrong pointer', 'import ctypes; ctypes.string_at(8)', { signal: 'SIGSEGV' }, 'not_memory'],
  ['its own exit', 'import os; os._exit(137)', { exitCode: 137 }, 'unknown'],
])('a Python that really dies of %s', async (_, script, end, kind) => {
  const evidence = await start(['python3', '-c', script]).evidence();
  expect(evidence).toMatchObject(end);
  expect(classify(evidence)).toMatchObject({ kind });
});

it('a process of somebody else with the same command line is not touched', async () => {
  const script = JSON.stringify([['out', 'here\n'], ['forever']]);
  const stranger = spawn(process.execPath, [PUPPET, script], { stdio: ['ignore', 'pipe', 'ignore'] });
  await once(stranger.stdout, 'data');
  const rig = puppet(
    [
      ['child', [['err', OOM], ['on', 'SIGTERM', ''], ['forever']], { session: true }],
      ['child', [['out', 'here\n'], ['forever']], { session: true }],
      ['forever'],
    ],
    { stopGraceMs: 200 },
  );
  expect(await rig.evidence()).toMatchObject({ stoppedBecause: 'fatal-line' });
  expect(stranger.exitCode ?? stranger.signalCode).toBeNull();
  stranger.kill();
  expect((await once(stranger, 'exit'))[1]).toBe('SIGTERM');
});

it('a tree is found and ended where no program can be found, not even ps', async () => {
  const rig = puppet(
    [
      ['child', [['on', 'SIGTERM', ''], ['err', OOM], ['forever']], { session: true }],
      ['child', [['forever']]],
      ['forever'],
    ],
    { env: { PATH: '' }, stopGraceMs: 200 },
  );
  expect(await rig.evidence()).toMatchObject({ stoppedBecause: 'fatal-line' });
});

it('a launcher that starts dead workers again is not given the time to', async () => {
  const rig = puppet(
    [
      ['on', 'SIGTERM', 'not me\n'],
      ['child', [['err', OOM], ['forever']], { session: true }],
      ['respawn', [['out', 'worker\n'], ['forever']]],
    ],
    { stopGraceMs: 300 },
  );
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ signal: 'SIGKILL', stoppedBecause: 'fatal-line' });
  expect(evidence.survivors).toBeUndefined();
});

it('a run that closes both of its streams is waited for', async () => {
  const gate = createGate();
  const rig = puppet([['out', 'quiet from here\n'], ['closeStreams'], ['await', gate.path], ['exit', 3]]);
  await rig.stdout.until('quiet');
  gate.open();
  expect(await rig.evidence()).toMatchObject({ exitCode: 3, stoppedBecause: undefined });
});

it('grandchildren that hold stderr open, and listen to nobody, hold up nothing', async () => {
  const holder = [['on', 'SIGTERM', ''], ['on', 'SIGHUP', ''], ['err', 'held\n'], ['forever']] as const;
  const rig = puppet(
    [
      ['passOn', 'SIGUSR1'],
      ['child', [['exitOn', 'SIGUSR1', 0, ''], ['child', holder, { session: true }], ['child', holder], ['forever']]],
      ['childrenEnd'],
      ['exit', 8],
    ],
    { stopGraceMs: 200, drainMs: 100 },
  );
  while (rig.stderr.bytes().toString() !== 'held\nheld\n') await once(rig.stderr.stream, 'data');
  rig.attempt.signal('SIGUSR1');
  expect(await rig.evidence()).toMatchObject({ exitCode: 8, signal: undefined });
});

it('a launcher with fifty dead children that nobody reaped is ended at once', async () => {
  const script =
    'import os, time\nfor _ in range(50):\n  if os.fork() == 0: os._exit(0)\nprint("forked", flush=True)\ntime.sleep(600)';
  const rig = start(['python3', '-c', script], { stopGraceMs: 60_000 });
  await rig.stdout.until('forked');
  rig.attempt.signal('SIGTERM');
  expect(await rig.evidence()).toMatchObject({ signal: 'SIGTERM', forwardedSignal: 'SIGTERM' });
});

it.each([
  ['SIGHUP', 'forwarded-signal'],
  ['SIGQUIT', 'forwarded-signal'],
  ['SIGTERM', 'forwarded-signal'],
  ['SIGUSR1', undefined],
  ['SIGUSR2', undefined],
] as const)('%s reaches the trainer once, and is noted', async (signal, stoppedBecause) => {
  const rig = puppet([['exitOn', signal, 21, `heard ${signal}\n`], ['out', 'ready\n'], ['forever']]);
  await rig.stdout.until('ready');
  rig.attempt.signal(signal);
  expect(await rig.evidence()).toMatchObject({ exitCode: 21, forwardedSignal: signal, stoppedBecause });
  expect(rig.stdout.bytes().toString()).toBe(`ready\nheard ${signal}\n`);
});

it('a trainer that has stopped itself goes on when it is told to', async () => {
  const rig = puppet([
    ['out', 'stopping\n'],
    ['exitOn', 'SIGUSR1', 12, 'awake\n'],
    ['kill', 'SIGSTOP'],
  ]);
  const state = (): string | undefined =>
    pidsWith(rig.mark).map((pid) => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1]!)[0];
  await expect.poll(state, { timeout: 10_000 }).toBe('T');
  rig.attempt.signal('SIGUSR1');
  rig.attempt.signal('SIGCONT');
  expect(await rig.evidence()).toMatchObject({ exitCode: 12 });
});

it('a file that grows does not save a run that is out of memory', async () => {
  const folder = freshFolder();
  const rig = puppet(
    [['saveOn', 'SIGTERM', join(folder, 'checkpoint-3', 'optimizer.pt'), 600, 5], ['err', OOM], ['forever']],
    { stopGraceMs: 300, outputDir: folder },
  );
  expect(await rig.evidence()).toMatchObject({ signal: 'SIGKILL', stoppedBecause: 'fatal-line' });
});

it('a tree that ends by itself after its message is not stopped', async () => {
  const rig = puppet(
    [
      [
        'child',
        [
          ['err', OOM],
          ['exit', 1],
        ],
        { session: true },
      ],
      ['childrenEnd'],
      ['out', 'cleaned up\n'],
      ['exit', 4],
    ],
    { fatalLineGraceMs: 60_000 },
  );
  expect(await rig.evidence()).toMatchObject({ exitCode: 4, stoppedBecause: undefined });
  expect(rig.stdout.bytes().toString()).toBe('cleaned up\n');
});

it('evidence tells what the run was about before it fell silent in the middle of a save', async () => {
  const folder = freshFolder();
  const rig = puppet(
    [
      ['touch', join(folder, 'half')],
      ['err', `Traceback (most recent call last):\n  File "t.py", line 3, in save_model\n    gather(x)\n${OOM}`],
      ['forever'],
    ],
    { outputDir: folder },
  );
  const evidence = await rig.evidence();
  expect(classify(evidence)).toMatchObject({ kind: 'vram_checkpoint_save_spike', phase: 'save' });
});
