import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it, vi } from 'vitest';
import { classify } from '../../src/diagnosis/index.ts';
import type { Stall } from '../../src/supervisor/index.ts';
import { type Action, createGate, pidsWith, puppet, start } from './rig.ts';

const OOM =
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.12 GiB. GPU 0 has a total capacity of 15.77 GiB of which 1.02 GiB is free. Including non-PyTorch memory, this process has 14.74 GiB memory in use. Of the allocated memory 13.90 GiB is allocated by PyTorch, and 310.00 MiB is reserved by PyTorch but unallocated.';

const folders: string[] = [];
const freshFolder = (): string => {
  folders.push(mkdtempSync(join(tmpdir(), 'snug-output-')));
  return folders.at(-1)!;
};
afterAll(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});

const dying = (text: string, code = 1): readonly Action[] => [
  ['err', `Traceback (most recent call last):\n  File "run.py", line 9, in step\n    out = model(x)\n${text}\n`],
  ['exit', code],
];

it.each([
  ['the allocator', OOM, 'vram_capacity'],
  ['the allocator of an AMD card', OOM.replaceAll('CUDA', 'HIP'), 'vram_capacity'],
  ['the runtime', 'RuntimeError: CUDA error: out of memory', 'vram_capacity'],
  [
    'cuBLAS',
    'RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`',
    'vram_capacity',
  ],
  [
    'a Mac',
    'RuntimeError: MPS backend out of memory (MPS allocated: 17.10 GiB, other allocations: 1.02 GiB, max allowed: 18.13 GiB). Tried to allocate 512.00 MiB on private pool.',
    'vram_capacity',
  ],
  [
    'JAX',
    'jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.',
    'vram_capacity',
  ],
  [
    'the allocator of the host',
    "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 34359738368 bytes. Error code 12 (Cannot allocate memory)",
    'host_ram',
  ],
  ['Python', 'MemoryError', 'host_ram'],
  [
    'numpy',
    'numpy._core._exceptions._ArrayMemoryError: Unable to allocate 91.6 GiB for an array with shape (6144000000,) and data type int64',
    'host_ram',
  ],
  ['the system', 'OSError: [Errno 12] Cannot allocate memory', 'host_ram'],
  ['a killed worker', 'RuntimeError: DataLoader worker (pid 5150) is killed by signal: Killed. ', 'dataloader_ram'],
  [
    'shared memory',
    "RuntimeError: DataLoader worker (pid 5151) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
    'shm',
  ],
  ['a full disk', 'OSError: [Errno 28] No space left on device', 'disk'],
  ['a quota', "OSError: [Errno 122] Disk quota exceeded: '/home/user/out/checkpoint-3'", 'disk'],
  ['a bug', 'ValueError: too many values to unpack (expected 2)', 'not_memory'],
  ['a failed assertion on the device', 'RuntimeError: CUDA error: device-side assert triggered', 'not_memory'],
  ['faulty hardware', 'RuntimeError: CUDA error: uncorrectable ECC error encountered', 'not_memory'],
])('a trainer that dies of what %s says is told apart', async (_, text, kind) => {
  // It ends by itself, however long that takes a busy machine.
  const evidence = await puppet(dying(text), { fatalLineGraceMs: 60_000 }).evidence();
  expect(evidence).toMatchObject({ exitCode: 1, stoppedBecause: undefined });
  expect(classify(evidence)).toMatchObject({ kind });
});

it.each([
  ['SIGKILL', 'unknown'],
  ['SIGBUS', 'shm'],
  ['SIGABRT', 'unknown'],
  ['SIGSEGV', 'not_memory'],
] as const)('a silent death by %s is no OOM of the card', async (signal, kind) => {
  const evidence = await puppet([
    ['out', 'step 3\n'],
    ['kill', signal],
  ]).evidence();
  expect(evidence).toMatchObject({ exitCode: undefined, signal, lines: [] });
  const failure = classify(evidence);
  expect(failure).toMatchObject({ kind });
  expect(failure?.resource).not.toBe('vram');
});

it.each(['out', 'err'] as const)(
  'an OOM on stream %s counts, also when a rank dies inside another rank’s line',
  async (stream) => {
    const rig = puppet([
      ['passOn', 'SIGTERM'],
      ['child', [[stream, '[rank0]: step 4 of'], ['forever']], { session: true }],
      ['child', [[stream === 'out' ? 'err' : 'out', `[rank1]: ${OOM}\n`], ['forever']], { session: true }],
      ['childrenEnd'],
      ['exit', 1],
    ]);
    const evidence = await rig.evidence();
    expect(evidence.stoppedBecause).toBe('fatal-line');
    expect(classify(evidence)).toMatchObject({ kind: 'vram_capacity', evidence: [{ rank: 1 }] });
  },
);

it('goes on when the disk of the log is full, and shows everything', async () => {
  const rig = puppet(
    [
      ['flood', 'out', 3000],
      ['exit', 0],
    ],
    {
      logPath: '/dev/full',
      samplesPath: '/dev/full',
    },
  );
  expect(await rig.evidence()).toMatchObject({ exitCode: 0 });
  expect(rig.stdout.bytes().toString()).toMatch(/^line 0 [\s\S]*line 2999 x+\n$/);
});

it('keeps head and end of a log that grows past its limit, and shows everything', async () => {
  const rig = puppet(
    [
      ['flood', 'err', 4000],
      ['exit', 0],
    ],
    { logLimitBytes: 20_000 },
  );
  await rig.evidence();
  expect(rig.stderr.bytes().length).toBeGreaterThan(350_000);
  const log = rig.log();
  expect(log.length).toBeLessThan(20_500);
  expect(log).toMatch(/^err\| line 0 /);
  expect(log).toMatch(/snug\| \d+ bytes are left out here/);
  expect(log).toMatch(/err\| line 3999 x+\n$/);
});

it('keeps no secret in the log, and leaves what is shown as it is', async () => {
  const rig = puppet(
    [
      ['out', 'key is tiger-lily-77!\n'],
      ['exit', 0],
    ],
    { secrets: ['tiger-lily-77'] },
  );
  await rig.evidence();
  expect(rig.log()).toBe('out| key is *************!\n');
  expect(rig.stdout.bytes().toString()).toBe('key is tiger-lily-77!\n');
});

it('suspends the whole tree, sessions of their own included, and lets it go on', async () => {
  const rig = puppet([
    ['passOn', 'SIGUSR1'],
    ['child', [['exitOn', 'SIGUSR1', 0, 'worker ends\n'], ['out', 'worker\n'], ['forever']], { session: true }],
    ['childrenEnd'],
    ['exit', 6],
  ]);
  await rig.stdout.until('worker\n');
  const states = (): string[] =>
    pidsWith(rig.mark).map((pid) => /\) (\S)/.exec(readFileSync(`/proc/${pid}/stat`, 'latin1'))![1]!);
  rig.attempt.signal('SIGTSTP');
  await expect.poll(states, { timeout: 10_000 }).toEqual(['T', 'T']);
  rig.attempt.signal('SIGUSR1');
  rig.attempt.signal('SIGCONT');
  expect(await rig.evidence()).toMatchObject({ exitCode: 6 });
  expect(rig.stdout.bytes().toString()).toBe('worker\nworker ends\n');
});

it('does not wait for zombies', async () => {
  const script = 'import os, time\nif os.fork() == 0: os._exit(0)\nprint("forked", flush=True)\ntime.sleep(600)';
  const rig = start(['python3', '-c', script]);
  await rig.stdout.until('forked');
  rig.attempt.signal('SIGTERM');
  expect(await rig.evidence()).toMatchObject({ signal: 'SIGTERM', forwardedSignal: 'SIGTERM' });
});

it('waits for a save past the grace, as long as it grows', async () => {
  const folder = freshFolder();
  const rig = puppet(
    [
      ['saveOn', 'SIGTERM', join(folder, 'checkpoint-9', 'model.safetensors'), 12, 5],
      ['on', 'SIGINT', ''],
      ['out', 'ready\n'],
      ['forever'],
    ],
    { stopGraceMs: 400, outputDir: folder },
  );
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGINT');
  rig.attempt.signal('SIGINT');
  expect(await rig.evidence()).toMatchObject({ exitCode: 5, signal: undefined });
  expect(readFileSync(join(folder, 'checkpoint-9', 'model.safetensors'), 'utf8')).toHaveLength(12_000);
});

it('does not take a log that grows for a save', async () => {
  const folder = freshFolder();
  const rig = puppet(
    [
      ['saveOn', 'SIGTERM', join(folder, 'runs', 'events.out.tfevents.7'), 600, 5],
      ['on', 'SIGINT', ''],
      ['out', 'ready\n'],
      ['forever'],
    ],
    { stopGraceMs: 300, outputDir: folder },
  );
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGINT');
  rig.attempt.signal('SIGINT');
  expect(await rig.evidence()).toMatchObject({ signal: 'SIGKILL' });
});

it('tells of a silence once, and leaves the run alone', async () => {
  const gate = createGate();
  const onStall = vi.fn<(stall: Stall) => void>(() => gate.open());
  const rig = puppet(
    [
      ['out', 'step 1\n'],
      ['await', gate.path],
      ['out', 'step 2\n'],
      ['exit', 0],
    ],
    {
      stall: { afterMs: 700, stop: false, onStall },
    },
  );
  expect(await rig.evidence()).toMatchObject({ exitCode: 0, stoppedBecause: undefined });
  expect(onStall).toHaveBeenCalledTimes(1);
  expect(onStall.mock.calls[0]![0].quietMs).toBeGreaterThanOrEqual(700);
  expect(onStall.mock.calls[0]![0].processes).toBe(1);
});

it('ends a silent run where that was asked for', async () => {
  const onStall = vi.fn();
  const rig = puppet([['out', 'step 1\n'], ['forever']], { stall: { afterMs: 500, stop: true, onStall } });
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ signal: 'SIGTERM', stoppedBecause: 'stall' });
  expect(classify(evidence)).toMatchObject({ kind: 'not_memory' });
});

it('leaves no spool beside the log when a slow reader was waited for', async () => {
  const rig = puppet([
    ['flood', 'out', 60_000],
    ['err', 'all written\n'],
    ['exit', 0],
  ]);
  rig.stdout.stream.pause();
  await rig.stderr.until('all written');
  rig.stdout.stream.resume();
  await rig.evidence();
  expect(existsSync(join(rig.folder, 'output.log.stdout.waiting'))).toBe(false);
});
