import { chmodSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { classify } from '../../src/diagnosis/index.ts';
import { createGate, pidsWith, puppet, start } from './rig.ts';

const OOM =
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.37 GiB. GPU 0 has a total capacity of 23.62 GiB of which 811.00 MiB is free. Including non-PyTorch memory, this process has 22.80 GiB memory in use. Of the allocated memory 21.90 GiB is allocated by PyTorch, and 402.50 MiB is reserved by PyTorch but unallocated.';

it('keeps the exit code', async () => {
  const evidence = await puppet([['exit', 41]]).evidence();
  expect(evidence).toMatchObject({
    exitCode: 41,
    signal: undefined,
    stoppedBecause: undefined,
    forwardedSignal: undefined,
  });
});

it('keeps a signal apart from an exit code', async () => {
  const evidence = await puppet([['kill', 'SIGKILL']]).evidence();
  expect(evidence).toMatchObject({ exitCode: undefined, signal: 'SIGKILL', lines: [] });
  expect(classify(evidence)).toMatchObject({ kind: 'unknown', candidates: ['host_ram', 'cgroup'], confidence: 'low' });
});

it('says that a program was not found, or cannot be executed', async () => {
  expect(await start(['no-such-trainer-here']).evidence()).toMatchObject({
    startFailure: 'not-found',
    exitCode: undefined,
  });
  const folder = mkdtempSync(join(tmpdir(), 'snug-script-'));
  const script = join(folder, 'train.sh');
  writeFileSync(script, '#!/no/such/interpreter\n');
  expect((await start([script]).evidence()).startFailure).toBe('not-executable');
  chmodSync(script, 0o755);
  expect((await start([script]).evidence()).startFailure).toBe('not-executable');
  expect((await start(['true'], { cwd: join(folder, 'gone') }).evidence()).startFailure).toBe('other');
});

it('stops a tree whose rank is out of memory while the others wait for it', async () => {
  const rig = puppet([
    ['passOn', 'SIGTERM'],
    ['child', [['err', `[rank1]: ${OOM}\n`], ['forever']], { session: true }],
    ['child', [['forever']], { session: true }],
    ['childrenEnd'],
    ['exit', 1],
  ]);
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ exitCode: 1, stoppedBecause: 'fatal-line', forwardedSignal: undefined });
  expect(classify(evidence)).toMatchObject({ kind: 'vram_capacity', evidence: [{ rank: 1, stream: 'stderr' }] });
});

it('sees a fatal line that was never ended', async () => {
  const rig = puppet([
    ['err', ' 61%|██████    | 61/100 [00:09<00:06]\rRuntimeError: CUDA error: out of memory'],
    ['forever'],
  ]);
  expect(await rig.evidence()).toMatchObject({ stoppedBecause: 'fatal-line', signal: 'SIGTERM' });
});

it('leaves a tree alone that goes on training after an error it has caught', async () => {
  // Four times as long as such a tree is given.
  const rig = puppet([
    ['train', 'err', 7, 50],
    ['err', `\n${OOM}\n`],
    ['train', 'err', 40, 400],
    ['exit', 0],
  ]);
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ exitCode: 0, stoppedBecause: undefined, lines: [{ followedByProgress: true }] });
  expect(classify(evidence)).toBeUndefined();
});

it('takes an out-of-memory text in a sample for what it is', async () => {
  const quoted = [
    JSON.stringify({ prompt: 'why does it die?', completion: OOM }),
    `> ${OOM}`,
    `│ ${OOM.slice(0, 60)} │`,
    'hint: lower the batch when you see CUDA out of memory. Tried to allocate 2.00 GiB',
  ];
  const rig = puppet([...quoted.map((text) => ['out', `${text}\n`] as const), ['out', 'loss: 0.31\n'], ['exit', 0]]);
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ exitCode: 0, lines: [], stoppedBecause: undefined });
  expect(classify(evidence)).toBeUndefined();
});

it('kills a tree that ignores SIGTERM once its grace is over', async () => {
  const rig = puppet(
    [
      ['on', 'SIGTERM', 'not yet\n'],
      ['child', [['on', 'SIGTERM', 'me neither\n'], ['err', `${OOM}\n`], ['forever']], { session: true }],
      ['forever'],
    ],
    { stopGraceMs: 400 },
  );
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ signal: 'SIGKILL', stoppedBecause: 'fatal-line' });
  expect(rig.stdout.bytes().toString()).toContain('not yet');
  expect(rig.stdout.bytes().toString()).toContain('me neither');
});

it('wakes a stopped process to end it', async () => {
  const rig = puppet([
    [
      'child',
      [
        ['err', `${OOM}\n`],
        ['exitOn', 'SIGTERM', 0, 'woken\n'],
        ['kill', 'SIGSTOP'],
      ],
    ],
    ['forever'],
  ]);
  await rig.evidence();
  expect(rig.stdout.bytes().toString()).toBe('woken\n');
});

it('gives a launcher the signal alone when it hands it on', async () => {
  const rig = puppet([
    ['passOn', 'SIGTERM'],
    ['child', [['exitOn', 'SIGTERM', 0, 'worker saved\n'], ['err', `${OOM}\n`], ['forever']], { session: true }],
    ['childrenEnd'],
    ['out', 'launcher done\n'],
    ['exit', 9],
  ]);
  expect(await rig.evidence()).toMatchObject({ exitCode: 9, stoppedBecause: 'fatal-line' });
  expect(rig.stdout.bytes().toString()).toBe('worker saved\nlauncher done\n');
});

it('stops workers in sessions of their own that outlive their launcher', async () => {
  const rig = puppet([
    ['exitOn', 'SIGUSR1', 3, ''],
    ['child', [['out', 'working\n'], ['forever']], { session: true }],
    ['child', [['child', [['out', 'nested\n'], ['forever']], { session: true }], ['forever']], { session: true }],
    ['forever'],
  ]);
  await Promise.all([rig.stdout.until('working'), rig.stdout.until('nested')]);
  rig.attempt.signal('SIGUSR1');
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ exitCode: 3, stoppedBecause: undefined });
  expect(evidence.treePids).toHaveLength(4);
  expect(pidsWith(rig.mark)).toEqual([]);
});

it('finds a process by the pipe it holds, though it left parent and session at once', async () => {
  const rig = start([
    'python3',
    '-c',
    'import subprocess, sys; subprocess.run(["sh", "-c", "(setsid sleep 60 &)"]); sys.exit(5)',
  ]);
  const evidence = await rig.evidence();
  expect(evidence.exitCode).toBe(5);
  expect(pidsWith(rig.mark)).toEqual([]);
});

it('does not wait for the end of a pipe that a grandchild holds', async () => {
  const rig = puppet(
    [
      ['exitOn', 'SIGUSR1', 2, ''],
      ['child', [['on', 'SIGTERM', ''], ['out', 'holding\n'], ['forever']], { session: true }],
      ['forever'],
    ],
    { stopGraceMs: 200 },
  );
  await rig.stdout.until('holding');
  rig.attempt.signal('SIGUSR1');
  expect(await rig.evidence()).toMatchObject({ exitCode: 2, stoppedBecause: undefined });
});

it('keeps what a short-lived straggler still has to say', async () => {
  const gate = createGate();
  const rig = puppet(
    [
      ['exitOn', 'SIGUSR1', 0, ''],
      [
        'child',
        [
          ['out', 'early\n'],
          ['await', gate.path],
          ['out', 'last words\n'],
          ['exit', 0],
        ],
      ],
      ['forever'],
    ],
    { drainMs: 10_000 },
  );
  await rig.stdout.until('early');
  rig.attempt.signal('SIGUSR1');
  gate.open();
  await rig.evidence();
  expect(rig.stdout.bytes().toString()).toBe('early\nlast words\n');
});
