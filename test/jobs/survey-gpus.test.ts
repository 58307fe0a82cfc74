import { stripVTControlCharacters } from 'node:util';
import { beforeAll, expect, it } from 'vitest';
import { check, type PreflightRequest, surveyGpus } from '../../src/jobs/index.ts';
import { type GpuSurvey, gpuSurveyJson, hostRamToRent, renderGpuSurvey } from '../../src/report/index.ts';
import { globalBatchSize } from '../../src/spec/index.ts';
import { fakePorts } from '../support/fake-ports.ts';

const ports = fakePorts({
  files: {
    '/project/base/config.json': JSON.stringify({
      model_type: 'llama',
      hidden_size: 2560,
      intermediate_size: 7680,
      num_hidden_layers: 28,
      num_attention_heads: 16,
      num_key_value_heads: 8,
      vocab_size: 64000,
      torch_dtype: 'bfloat16',
    }),
    '/project/train.py': 'from transformers import Trainer\n# block_size\n',
  },
});
const flags = ['--per_device_train_batch_size', '8', '--gradient_accumulation_steps', '8', '--block_size=2048'];
const argv = ['python', 'train.py', '--model_name_or_path', 'base', ...flags];
const request = (rest: Partial<PreflightRequest> = {}): PreflightRequest => ({
  target: { kind: 'command', argv },
  policy: {},
  set: [],
  starts: false,
  ...rest,
});

let survey: GpuSurvey;
beforeAll(async () => {
  const outcome = await surveyGpus(ports, request());
  if (outcome.kind !== 'surveyed') throw new Error(JSON.stringify(outcome));
  survey = outcome.survey;
}, 120_000);

const text = async (of: GpuSurvey, options = {}): Promise<string> =>
  renderGpuSurvey(of, { colour: false, width: 80, ram: false, ...options });

it('says of every card what check says of it', async () => {
  const { fits } = survey;
  const named = new Map(fits.map((fit) => [fit.gpu, fit]));
  expect(named.get('rtx-3050-laptop')?.plan.verdict).toBe('refuse');
  const verdicts = new Set<string>();
  for (const gpu of ['gtx-1650', 't4', 'rtx-4090', 'a100-40gb', 'a100-80gb', 'h200']) {
    const { plan, count, sharded } = named.get(gpu)!;
    const checked = await check(ports, request({ gpu: `${gpu}:${sharded ? 1 : count}` }));
    if (checked.kind !== 'checked') throw new Error(checked.kind);
    const there = checked.report.plan!;
    if (sharded) expect(there.verdict).toBe('refuse');
    else {
      expect([gpu, there.verdict]).toEqual([gpu, plan.verdict]);
      if (there.verdict === 'rewrite') expect(plan.changes).toEqual(there.changes);
    }
    verdicts.add(plan.verdict);
  }
  expect([...verdicts].sort()).toEqual(['fits', 'refuse', 'rewrite']);
}, 60_000);

it('shards over more cards where one is too small, with the same global batch', () => {
  const { fits } = survey;
  const sharded = fits.filter((fit) => fit.sharded);
  expect(sharded.length).toBeGreaterThan(0);
  for (const { plan, distributed, count } of sharded) {
    expect(plan.verdict).not.toBe('refuse');
    expect(globalBatchSize({ ...plan.values, distributed })).toBe(64);
    expect(count).toBe(distributed.processesPerNode);
  }
});

it('a larger card of one generation never needs more cards', () => {
  const { fits } = survey;
  const ampere = fits.filter(({ gpu }) => /^(rtx-30|rtx-a|a10|a40|a16)/.test(gpu) && !gpu.startsWith('a100'));
  const bySize = [...ampere].sort((a, b) => a.totalBytes - b.totalBytes);
  const cards = bySize.map(({ plan, count }) => (plan.verdict === 'refuse' ? Number.POSITIVE_INFINITY : count));
  expect(cards).toEqual([...cards].sort((a, b) => b - a));
});

it('is a table of the cards that do, then the names of those that do not', async () => {
  const shown = await text(survey);
  expect(shown).toMatch(/^card +memory +cards +needs +how$/m);
  expect(shown).toMatch(/^h200 +140\.4 GiB +1 +\d+\.\d GiB +as it is$/m);
  expect(shown).toMatch(/^does not fit on \(the smallest plan needs \d+\.\d GiB\): (.|\n)*gtx-1650/m);
  expect(shown).not.toMatch(/^gtx-1650 /m);
  expect(shown.split('\n').every((line) => line.length <= 80)).toBe(true);
  expect(shown).toBe(stripVTControlCharacters(shown));
});

it('with --ram it names a size of RAM that is sold, above what the run needs', async () => {
  const shown = await text(survey, { ram: true });
  expect(shown).toMatch(/^h200 +140\.4 GiB +1 +\d+\.\d GiB +\d+ GB +as it is$/m);
  expect(hostRamToRent(11 * 2 ** 30)).toBe(24);
  expect(hostRamToRent(3000 * 2 ** 30)).toBeGreaterThan(3000 * 1.07);
});

it('as JSON: the launch, and a verdict, changes and an estimate for every card', () => {
  const json = gpuSurveyJson(survey);
  expect(json.launch.argv).toEqual(argv);
  expect(json.gpus.length).toBeGreaterThanOrEqual(70);
  for (const { verdict, changes, estimate, memory_bytes: memory } of json.gpus) {
    expect(Number.isInteger(estimate.vram.device_peak_bytes)).toBe(true);
    if (verdict === 'fits') expect(changes).toEqual([]);
    if (verdict !== 'refuse') expect(estimate.vram.device_peak_bytes).toBeLessThan(memory);
  }
});

it('says what is missing where nothing can be estimated', async () => {
  const outcome = await surveyGpus(ports, request({ target: { kind: 'command', argv: argv.slice(0, 2) } }));
  expect(outcome).toMatchObject({ kind: 'unknown', reason: { severity: 'error' } });
});
