import { expect, it } from 'vitest';
import type { Failure } from '../../src/diagnosis/index.ts';
import { check } from '../../src/jobs/index.ts';
import { nextAttempt, startingValues } from '../../src/jobs/next-attempt.ts';
import type { Preflight } from '../../src/jobs/preflight.ts';
import type { MadeAttempt } from '../../src/jobs/run-attempts.ts';
import { fakePorts } from '../support/fake-ports.ts';

const FAILURE: Failure = {
  kind: 'vram_capacity',
  resource: 'vram',
  phase: 'forward',
  confidence: 'high',
  candidates: [],
  evidence: [],
  numbers: {},
};

/** A launch whose model nobody knows, so that only its batch can be made smaller. */
async function launched(script: string, ...more: string[]): Promise<Preflight> {
  const argv = ['python', 'train.py', '--model_name_or_path', 'no/such', '--per_device_train_batch_size', '12'];
  const ports = fakePorts({ files: { '/project/train.py': script } });
  const outcome = await check(ports, {
    target: { kind: 'command', argv: [...argv, '--output_dir', 'out', ...more] },
    policy: {},
    set: [],
    starts: true,
  });
  if (outcome.kind !== 'checked') throw new Error('not read');
  return outcome;
}

const failed = (preflight: Preflight): MadeAttempt => {
  const values = startingValues(preflight)!;
  return {
    planned: { changes: [], estimate: undefined, values },
    evidence: {} as MadeAttempt['evidence'],
    failure: FAILURE,
    startedMs: 0,
    values,
    outputDir: 'out',
  };
};

const WHOLE = {
  path: '/project/out/checkpoint-7',
  step: 7,
  outputDir: 'out',
  trainBatchSize: 12,
  maxSteps: 40,
  skipped: [],
};

const next = async (preflight: Preflight, checkpoint: boolean, maxRetries = 3) => {
  const attempt = failed(preflight);
  return nextAttempt(fakePorts(), {
    preflight,
    made: [attempt],
    saved: {
      checkpoint: checkpoint ? { ...WHOLE, values: attempt.values } : undefined,
      anything: checkpoint,
    },
    maxRetries,
  });
};

const RESUMES = 'from transformers import Trainer\ntrainer.train(resume_from_checkpoint=args.resume_from_checkpoint)\n';
const DOES_NOT = 'from transformers import Trainer\ntrainer.train()\n';

it('goes on from the checkpoint with a smaller batch where the script can resume', async () => {
  const answer = await next(await launched(RESUMES), true);
  if (answer.kind !== 'retry') throw new Error('gave up');
  expect(answer.planned.resumeFrom?.path).toBe('/project/out/checkpoint-7');
  expect(answer.planned.freshOutputDir).toBeUndefined();
  const { perDeviceTrainBatchSize, gradientAccumulationSteps } = answer.planned.values!;
  expect([perDeviceTrainBatchSize, gradientAccumulationSteps]).toEqual([6, 2]);
  expect(answer.events.map(({ kind }) => kind)).toEqual(['replanned', 'resuming']);
});

it('starts over beside the old output where the script cannot, and says why', async () => {
  const answer = await next(await launched(DOES_NOT), true);
  if (answer.kind !== 'retry') throw new Error('gave up');
  expect(answer.planned).toMatchObject({ freshOutputDir: 'out-retry-1' });
  expect(answer.planned.resumeFrom).toBeUndefined();
  expect(answer.events.at(-1)).toMatchObject({ kind: 'starting-over', outputDir: 'out-retry-1' });
});

it('starts over in place when nothing was saved yet', async () => {
  const answer = await next(await launched(RESUMES), false);
  if (answer.kind !== 'retry') throw new Error('gave up');
  expect(answer.planned.freshOutputDir).toBeUndefined();
  expect(answer.events.at(-1)).toMatchObject({
    kind: 'starting-over',
    reason: 'no complete checkpoint was written yet',
  });
});

it('goes on in the folder the checkpoint lies in, past those that are not whole', async () => {
  const preflight = await launched(RESUMES);
  const attempt = failed(preflight);
  const answer = await nextAttempt(fakePorts(), {
    preflight,
    made: [attempt],
    saved: {
      checkpoint: {
        ...WHOLE,
        values: attempt.values,
        outputDir: 'out-retry-1',
        skipped: [{ path: '/project/out-retry-1/checkpoint-9', reason: 'optimizer.pt was cut off' }],
      },
      anything: true,
    },
    maxRetries: 3,
  });
  if (answer.kind !== 'retry') throw new Error('gave up');
  expect(answer.planned).toMatchObject({ freshOutputDir: 'out-retry-1', resumeFrom: { step: 7 } });
  expect(answer.events.map(({ kind }) => kind)).toEqual(['replanned', 'checkpoint-skipped', 'resuming']);
});

it('never starts over into a folder that is there', async () => {
  const preflight = await launched(DOES_NOT);
  const attempt = failed(preflight);
  const answer = await nextAttempt(fakePorts({ folders: ['/project/out-retry-1', '/project/out-retry-2'] }), {
    preflight,
    made: [attempt],
    saved: { checkpoint: undefined, anything: true },
    maxRetries: 3,
  });
  expect(answer).toMatchObject({ planned: { freshOutputDir: 'out-retry-3' } });
});

it('gives up when the retries are used, with what would help', async () => {
  const answer = await next(await launched(RESUMES), true, 0);
  expect(answer).toMatchObject({ kind: 'give-up', events: [{ kind: 'given-up' }] });
});
