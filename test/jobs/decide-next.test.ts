import { expect, it } from 'vitest';
import type { Evidence, Failure } from '../../src/diagnosis/index.ts';
import { decideNext } from '../../src/jobs/decide-next.ts';
import type { DecideRequest } from '../../src/jobs/decision.ts';
import { startingValues } from '../../src/jobs/next-attempt.ts';
import { type Preflight, preflight } from '../../src/jobs/preflight.ts';
import type { MadeAttempt } from '../../src/jobs/run-attempts.ts';
import { completeCheckpoint } from '../support/complete-checkpoint.ts';
import { fakePorts } from '../support/fake-ports.ts';

const SCRIPT =
  'from transformers import HfArgumentParser, Trainer\ntrainer.train(resume_from_checkpoint=args.resume_from_checkpoint)\n';

async function launched(...flags: string[]): Promise<Preflight> {
  const argv = ['python', 'train.py', '--per_device_train_batch_size', '10', '--output_dir', 'out', ...flags];
  const outcome = await preflight(fakePorts({ files: { '/project/train.py': SCRIPT } }), {
    target: { kind: 'command', argv },
    policy: {},
    set: [],
    starts: true,
  });
  if (outcome.kind !== 'checked') throw new Error('not read');
  return outcome;
}

const ended = (more: Partial<Evidence>): Evidence => ({
  exitCode: 1,
  signal: undefined,
  startFailure: undefined,
  stoppedBecause: undefined,
  forwardedSignal: undefined,
  lines: [],
  tail: [],
  cgroupOomKills: 0,
  peakRamBytes: 0,
  peakVramBytes: undefined,
  stepsSeen: 12,
  ...more,
});

const failure = (more: Partial<Failure>): Failure => ({
  kind: 'dataloader_ram',
  resource: 'host_ram',
  phase: 'unknown',
  confidence: 'high',
  candidates: [],
  evidence: [],
  numbers: {},
  ...more,
});

const made = (checked: Preflight, evidence: Evidence, why: Failure | undefined, more: object = {}): MadeAttempt => ({
  planned: { changes: [], estimate: undefined, values: startingValues(checked), ...more },
  evidence,
  failure: why,
  startedMs: 0,
  values: startingValues(checked),
  outputDir: 'out',
});

const decide = (checked: Preflight, attempts: readonly MadeAttempt[], more: Partial<DecideRequest> = {}) =>
  decideNext(
    fakePorts(),
    { preflight: checked, made: attempts, before: [], maxRetries: 2, signalled: undefined, ...more },
    async () => true,
  );

const RESUMED = {
  resumeFrom: {
    path: '/project/out/checkpoint-5',
    step: 5,
    values: undefined,
    outputDir: 'out',
    trainBatchSize: 10,
    maxSteps: 50,
    skipped: [],
  },
};

it('takes workers away after one died, and leaves the batch alone', async () => {
  const checked = await launched('--dataloader_num_workers', '7');
  const next = await decide(checked, [made(checked, ended({}), failure({}))]);
  if (next.kind !== 'retry') throw new Error('ended');
  expect(next.planned.changes.map(({ setting, from, to }) => [setting, from, to])).toContainEqual([
    'dataloaderNumWorkers',
    7,
    0,
  ]);
  expect(next.planned.changes.some(({ setting }) => setting === 'perDeviceTrainBatchSize')).toBe(false);
});

it('moves only what /dev/shm depends on after it ran out', async () => {
  const checked = await launched('--dataloader_num_workers', '2');
  const next = await decide(checked, [made(checked, ended({}), failure({ kind: 'shm', resource: 'shm' }))]);
  expect(next).toMatchObject({ planned: { changes: [{ setting: 'dataloaderNumWorkers', to: 0 }] } });
});

it.each([
  ['the retries are used up', { maxRetries: 0 }, ['--dataloader_num_workers', '7']],
  ['there are no workers to take away', {}, ['--dataloader_num_workers', '0']],
])('gives host RAM up when %s', async (_, more, flags) => {
  const checked = await launched(...flags);
  const next = await decide(checked, [made(checked, ended({}), failure({ kind: 'host_ram' }))], more);
  expect(next).toMatchObject({ kind: 'end', ending: { whose: 'snug', reason: 'out-of-host-ram' } });
});

it('keeps fewer workers in the retries that follow for want of VRAM', async () => {
  const checked = await launched('--dataloader_num_workers', '7');
  const first = await decide(checked, [made(checked, ended({}), failure({}))]);
  if (first.kind !== 'retry') throw new Error('ended');
  const values = first.planned.values!;
  const second: MadeAttempt = {
    ...made(checked, ended({}), failure({ kind: 'vram_capacity', resource: 'vram', phase: 'forward' })),
    planned: first.planned,
    values,
  };
  const next = await decide(checked, [made(checked, ended({}), failure({})), second]);
  if (next.kind !== 'retry') throw new Error('ended');
  expect(next.planned.values).toMatchObject({ dataloaderNumWorkers: 0, perDeviceTrainBatchSize: 5 });
  expect(next.planned.changes.map(({ setting }) => setting)).toContain('dataloaderNumWorkers');
});

it('takes exit code 0 without a step for no success', async () => {
  const checked = await launched();
  const oom = made(checked, ended({}), failure({ kind: 'vram_capacity', resource: 'vram' }));
  const idle = made(checked, ended({ exitCode: 0, stepsSeen: 0 }), undefined, RESUMED);
  const next = await decide(checked, [oom, idle]);
  expect(next).toMatchObject({ kind: 'end', ending: { whose: 'snug', reason: 'no-new-step' } });
  expect(next.events).toMatchObject([{ kind: 'made-no-step', checkpoint: '/project/out/checkpoint-5' }]);
});

it.each([
  ['it made steps', { stepsSeen: 3 }, RESUMED],
  ['all steps were made before', { stepsSeen: 0 }, { resumeFrom: { ...RESUMED.resumeFrom, step: 50 } }],
  ['it did not resume', { stepsSeen: 0 }, {}],
])('takes exit code 0 for success where %s', async (_, evidence, planned) => {
  const checked = await launched();
  const oom = made(checked, ended({}), failure({ kind: 'vram_capacity', resource: 'vram' }));
  const next = await decide(checked, [oom, made(checked, ended({ exitCode: 0, ...evidence }), undefined, planned)]);
  expect(next).toEqual({ kind: 'end', ending: { whose: 'trainer', exitCode: 0, signal: undefined }, events: [] });
});

it.each([
  ['a signal was passed on', { forwardedSignal: 'SIGTERM' as const }],
  ['it was stopped for standing still', { stoppedBecause: 'stall' as const }],
])('never starts again after %s', async (_, evidence) => {
  const checked = await launched();
  const last = made(checked, ended(evidence), failure({ kind: 'vram_capacity', resource: 'vram' }));
  expect(await decide(checked, [last])).toMatchObject({ kind: 'end', ending: { whose: 'trainer' } });
});

it('memory that grows with the steps: the same again from its checkpoint, as long as it comes further', async () => {
  const checked = await launched();
  const grown = failure({ kind: 'vram_leak_growth', resource: 'vram' });
  const ports = fakePorts({ files: completeCheckpoint('/project/out', 30) });
  const from = (attempts: readonly MadeAttempt[]) =>
    decideNext(
      ports,
      { preflight: checked, made: attempts, before: [], maxRetries: 2, signalled: undefined },
      async () => true,
    );
  const next = await from([made(checked, ended({}), grown)]);
  expect(next).toMatchObject({
    kind: 'retry',
    planned: { changes: [], resumeFrom: { step: 30 } },
    events: [{ kind: 'same-again' }, { kind: 'resuming', step: 30 }],
  });
  const stuck = await from([made(checked, ended({}), grown, { resumeFrom: { ...RESUMED.resumeFrom, step: 30 } })]);
  expect(stuck).toMatchObject({ kind: 'end', ending: { reason: 'out-of-vram' }, events: [{ kind: 'given-up' }] });
  expect(JSON.stringify(stuck.events)).toMatch(/smaller settings only put the end off/);
});

it('memory that grows, and nothing saved: no smaller batch is tried', async () => {
  const checked = await launched();
  const grown = failure({ kind: 'vram_leak_growth', resource: 'vram' });
  const next = await decide(checked, [made(checked, ended({}), grown)]);
  expect(next).toMatchObject({ kind: 'end', ending: { reason: 'out-of-vram' } });
});

it('trains nothing again when only saving ran out of memory, after the last step', async () => {
  const checked = await launched();
  const spike = failure({ kind: 'vram_checkpoint_save_spike', resource: 'vram', phase: 'save' });
  const after = (evidence: Partial<Evidence>) =>
    decideNext(
      fakePorts({ files: completeCheckpoint('/project/out', 40) }),
      {
        preflight: checked,
        made: [made(checked, ended(evidence), spike)],
        before: [],
        maxRetries: 2,
        signalled: undefined,
      },
      async () => true,
    );
  const done = await after({ finished: true });
  expect(done).toMatchObject({ kind: 'end', ending: { reason: 'out-of-vram' } });
  expect(JSON.stringify(done.events)).toMatch(/not trained again.*checkpoint-40/);
  expect(JSON.stringify((await after({})).events)).not.toMatch(/not trained again/);
});
