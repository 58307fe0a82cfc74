import { expect, it } from 'vitest';
import { MiB } from '../../src/core/index.ts';
import { check, estimatePlans, type PreflightRequest } from '../../src/jobs/index.ts';
import { decide } from '../../src/jobs/run.ts';
import { type FakeWorld, fakePorts } from '../support/fake-ports.ts';

const CONFIG = JSON.stringify({
  model_type: 'llama',
  hidden_size: 1024,
  intermediate_size: 2816,
  num_hidden_layers: 12,
  num_attention_heads: 16,
  num_key_value_heads: 4,
  vocab_size: 32000,
  tie_word_embeddings: false,
  torch_dtype: 'float16',
});
const COMMAND = [
  'python',
  'train.py',
  '--model_name_or_path',
  'base',
  '--per_device_train_batch_size',
  '32',
  '--gradient_accumulation_steps',
  '3',
  '--block_size=2048',
];
const world = (rest: FakeWorld = {}): FakeWorld => ({
  files: {
    '/project/base/config.json': CONFIG,
    '/project/train.py': 'from transformers import Trainer\n# block_size\n',
  },
  ...rest,
});
const request = (rest: Partial<PreflightRequest> = {}): PreflightRequest => ({
  target: { kind: 'command', argv: COMMAND },
  policy: {},
  set: [],
  starts: false,
  ...rest,
});

async function checked(rest: Partial<PreflightRequest>, machine: FakeWorld = {}) {
  const outcome = await check(fakePorts(world(machine)), request(rest));
  if (outcome.kind !== 'checked') throw new Error(JSON.stringify(outcome.diagnostics));
  return outcome;
}

it('fits a large card as it is and a small one after a rewrite that keeps the global batch', async () => {
  const large = await checked({ gpu: '120GiB' });
  expect(large.report.plan?.verdict).toBe('fits');
  expect(large.report.fitted?.argv).toEqual(COMMAND);
  const small = await checked({ gpu: '12GiB' });
  const plan = small.report.plan!;
  if (plan.verdict !== 'rewrite') throw new Error(plan.verdict);
  const { perDeviceTrainBatchSize, gradientAccumulationSteps } = plan.values;
  expect(perDeviceTrainBatchSize * gradientAccumulationSteps).toBe(96);
  expect(perDeviceTrainBatchSize).toBeLessThan(32);
  expect(small.report.fitted?.argv).toContain(String(perDeviceTrainBatchSize));
  expect(plan.estimate.vram.devicePeakBytes).toBeLessThanOrEqual(small.budget!.usableBytes);
});

it('takes the dtype of the checkpoint where the launch leaves it open, and says whose word that is', async () => {
  const { report } = await checked({ gpu: '24GiB' });
  expect(report.spec.dtype).toEqual({ value: 'fp16', origin: { kind: 'derived', from: 'config.json of base' } });
});

it('reads the driver, counts what others hold, and asks about the launch’s own CUDA_VISIBLE_DEVICES', async () => {
  const machine: FakeWorld = {
    programs: (file) =>
      file === 'nvidia-smi'
        ? { stdout: '0, GPU-a, NVIDIA A, 24576, 1000, 23576, 8.6\n1, GPU-b, NVIDIA B, 49152, 0, 49152, 8.9\n' }
        : undefined,
  };
  const argv = ['env', 'CUDA_VISIBLE_DEVICES=1', ...COMMAND];
  const { report } = await checked({ target: { kind: 'command', argv } }, machine);
  expect(report.device?.name).toBe('NVIDIA B');
});

it('cannot tell without a card, a model, or a length, and says each', async () => {
  expect((await checked({})).report.plan).toMatchObject({ verdict: 'unknown', reason: { code: 'no-gpu' } });
  const argv = [...COMMAND.slice(0, 3), 'nobody/nothing', ...COMMAND.slice(4)];
  const { report } = await checked({ gpu: '24GiB', target: { kind: 'command', argv } });
  expect(report.plan).toMatchObject({ verdict: 'unknown', reason: { code: 'unknown-model', location: 'argv[3]' } });
  const short = COMMAND.slice(0, -1);
  const open = await checked({ gpu: '24GiB', target: { kind: 'command', argv: short } });
  expect(open.report.plan).toMatchObject({ verdict: 'unknown', reason: { code: 'unknown-setting' } });
  const told = await checked({ gpu: '24GiB', target: { kind: 'command', argv: short }, set: ['max_length=512'] });
  expect(told.report.plan?.verdict).not.toBe('unknown');
  expect(told.report.spec.maxLength).toEqual({ value: 512, origin: { kind: 'derived', from: '--set max_length' } });
});

it('calls a wrong --gpu and a wrong --set usage, and a missing config unreadable', async () => {
  const ports = fakePorts(world());
  expect((await check(ports, request({ gpu: 'rtx-9999' }))).kind).toBe('usage');
  expect((await check(ports, request({ set: ['max_lenght=5'] }))).kind).toBe('usage');
  expect((await check(ports, request({ target: { kind: 'config', path: 'none.yaml' } }))).kind).toBe('unreadable');
  expect(ports.written.size).toBe(0);
});

it('names who holds memory of the card, as far as the driver tells', async () => {
  const notes = async (apps: string) => {
    const machine: FakeWorld = {
      programs: (file, args) => {
        if (file !== 'nvidia-smi') return undefined;
        if (args.some((arg) => arg.startsWith('--query-compute-apps'))) return { stdout: apps };
        return { stdout: '0, GPU-a, NVIDIA A, 49152, 9300, 39852, 8.6\n' };
      },
    };
    const { report } = await checked({}, machine);
    const found = report.diagnostics.find(({ code }) => code === 'gpu-in-use');
    return [found?.message, ...(found?.notes ?? [])];
  };
  const held = 'other programs hold 9.1 GiB of GPU 0 (NVIDIA A)';
  expect(await notes('411, GPU-a, 8192\n99, GPU-a, [N/A]\n7, GPU-b, 512\n')).toEqual([
    held,
    'process 411 holds 8.0 GiB, process 99 holds an unknown part',
  ]);
  expect(await notes('')).toEqual([held]);
});

it('takes fp16 for bf16 on a card that has no units for it, and warns where it may not', async () => {
  const small = COMMAND.map((word) => (word === '32' ? '1' : word));
  const answer = async (gpu: string, flags: string[], policy = {}) => {
    const { report } = await checked({ gpu, policy, target: { kind: 'command', argv: [...small, ...flags] } });
    const warned = report.diagnostics.some(({ code }) => code === 'no-bf16');
    return [report.plan?.verdict, warned, report.plan?.verdict === 'rewrite' && report.plan.values.mixedPrecision];
  };
  expect(await answer('t4', ['--bf16'])).toEqual(['rewrite', false, 'fp16']);
  expect(await answer('t4', ['--bf16'], { allow: ['free', 'exact'] })).toEqual(['fits', true, false]);
  expect(await answer('t4', [])).toEqual(['fits', false, false]);
  expect(await answer('l4', ['--bf16'])).toEqual(['fits', false, false]);
});

it('starts, rewrites or stops by the mode', async () => {
  const start = async (gpu: string | undefined, mode: 'rewrite' | 'refuse' | 'warn') => {
    const decision = decide(await checked({ ...(gpu ? { gpu } : {}), policy: { mode } }));
    return decision.kind === 'stop' ? decision.reason : decision.changes.length > 0 ? 'rewritten' : 'as it came';
  };
  expect(await Promise.all([start('120GiB', 'refuse'), start('12GiB', 'refuse'), start(undefined, 'refuse')])).toEqual([
    'as it came',
    'refused',
    'cannot-estimate',
  ]);
  expect(await Promise.all([start('12GiB', 'rewrite'), start('12GiB', 'warn'), start(undefined, 'rewrite')])).toEqual([
    'rewritten',
    'as it came',
    'as it came',
  ]);
  expect(await Promise.all([start('1GiB', 'rewrite'), start('1GiB', 'warn')])).toEqual(['refused', 'as it came']);
});

it('asks the trainer’s Python for bitsandbytes only when the plan rests on it and the run starts here', async () => {
  // One short row: what the optimizer holds is most of it.
  const argv = ['python3.9', ...COMMAND.slice(1, -4), '1', '--block_size=256'];
  const ports = fakePorts({ ...world(), programs: () => ({ exitCode: 1 }) });
  const near = (gpu: string, starts: boolean) =>
    check(ports, request({ target: { kind: 'command', argv }, gpu, starts, policy: { allow: ['near'] } }));
  const roomy = await near('200GiB', true);
  if (roomy.kind !== 'checked') throw new Error(roomy.kind);
  // A little less than the run needs: the 8-bit optimizer alone makes up for it.
  const tight = `${Math.round((roomy.report.estimate!.vram.devicePeakBytes / 0.95 - 100 * MiB) / MiB)}MiB`;
  const assumed = await near(tight, false);
  expect(ports.calls).toEqual([]);
  expect(assumed).toMatchObject({ report: { plan: { verdict: 'rewrite', changes: [{ lever: 'optimizer-8bit' }] } } });
  const asked = await near(tight, true);
  expect(ports.calls.filter((call) => call.includes('bitsandbytes'))).toEqual(['python3.9 -c import bitsandbytes']);
  expect(asked).toMatchObject({ report: { plan: { verdict: 'refuse' } } });
});

it('estimates each line of a plans file by itself: a bad one spoils no other', async () => {
  const good = { id: 'a', model_config: JSON.parse(CONFIG), per_device_train_batch_size: 2, max_length: 128 };
  const lines = [
    JSON.stringify(good),
    '',
    '{broken',
    JSON.stringify({ ...good, id: 'c', max_lenght: 3 }),
    JSON.stringify({ ...good, id: 'd', model_config: { model_type: 'no-such' } }),
  ];
  const results = [];
  for await (const { id, estimate } of estimatePlans(fakePorts(world()), lines.join('\n'))) {
    results.push([id, estimate.ok ? 'estimated' : estimate.error[0]!.code]);
  }
  expect(results).toEqual([
    ['a', 'estimated'],
    ['line 3', 'bad-json'],
    ['c', 'unknown-key'],
    ['d', 'unsupported-architecture'],
  ]);
});

it('predicts nothing for a trainer whose step is not modelled, though all its sizes are known', async () => {
  const flags =
    '--num-layers 4 --hidden-size 256 --num-attention-heads 4 --seq-length 128 --vocab-size 1000 --micro-batch-size 1';
  const argv = ['torchrun', 'pretrain_gpt.py', ...flags.split(' ')];
  const { report, estimate } = await checked({ gpu: '40GiB', target: { kind: 'command', argv } });
  expect(report.model?.facts.hiddenSize).toBe(256);
  expect(estimate).toBeUndefined();
  expect(report.plan).toMatchObject({ verdict: 'unknown', reason: { code: 'not-estimated', location: 'argv[1]' } });
});
