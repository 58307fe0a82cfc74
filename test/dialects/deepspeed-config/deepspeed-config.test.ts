import { describe, expect, it } from 'vitest';
import { problemsOf, read, readBack, rewrite, said } from '../phrase-book.ts';

const json = (more: string): string =>
  `{\n  "bf16": {"enabled": "auto"},\n  "zero_optimization": {\n    "stage": 2${more}\n  }\n}\n`;
const line = 'torchrun --nproc-per-node 2 tune.py --per_device_train_batch_size 4 --deepspeed conf/ds.json';
const launch = (text: string) => read(line, { files: { 'conf/ds.json': text }, gpus: 2 });

describe('a DeepSpeed file that the trainer names', () => {
  it('says the stage, with its line', () => {
    const reading = launch(json(''));
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['torchrun', 'hf-trainer', 'deepspeed-config']);
    expect(reading.files).toEqual(['conf/ds.json']);
    expect(reading.spec.distributed?.value).toEqual({ nodes: 1, processesPerNode: 2, strategy: 'zero2', offload: [] });
  });

  it.each([
    [', "offload_optimizer": {"device": "cpu"}', ['optimizer']],
    [', "offload_optimizer": {"device": "none"}', []],
    [', "cpu_offload": true', ['optimizer']],
    [', "offload_optimizer": {"device": "nvme"}, "offload_param": {"device": "cpu"}', ['optimizer', 'parameters']],
  ])('says what is offloaded: %s', (more, offload) => {
    expect(launch(json(more)).spec.distributed?.value?.offload).toEqual(offload);
  });

  it('shards nothing without a stage', () => {
    expect(launch('{"train_batch_size": "auto"}').spec.distributed?.value?.strategy).toBe('ddp');
  });

  it('is an error where it is broken', () => {
    expect(problemsOf(line, { files: { 'conf/ds.json': '{\n' }, gpus: 2 })).toMatchObject([{ code: 'json-syntax' }]);
  });

  it('warns of a number that differs from the trainer’s', () => {
    const reading = launch('{"train_micro_batch_size_per_gpu": 3,\n "gradient_accumulation_steps": 1}');
    expect(reading.diagnostics.map((each) => `${each.code} ${each.location}`)).toEqual([
      'deepspeed-mismatch conf/ds.json:1',
    ]);
  });
});

describe('a rewrite', () => {
  it('changes numbers in both places and leaves auto alone', () => {
    const text = '{\n  "train_micro_batch_size_per_gpu": 4,\n  "gradient_accumulation_steps": "auto"\n}\n';
    const machine = { files: { 'conf/ds.json': text }, gpus: 2 };
    const fitted = rewrite(read(line, machine), { perDeviceTrainBatchSize: 1, gradientAccumulationSteps: 4 });
    expect(fitted.argv.slice(4)).toEqual([
      '--per_device_train_batch_size',
      '1',
      '--deepspeed',
      '/copies/ds.json',
      '--gradient_accumulation_steps',
      '4',
    ]);
    expect(fitted.files[0]!.text).toBe(text.replace('4', '1'));
    expect(said(readBack(fitted, machine), 'perDeviceTrainBatchSize').perDeviceTrainBatchSize).toBe('1 <- argv[5]');
  });

  it('changes stage and offload', () => {
    const machine = { files: { 'conf/ds.json': json('') }, gpus: 2 };
    const to = { nodes: 1, processesPerNode: 2, strategy: 'zero3', offload: ['optimizer', 'parameters'] };
    const reading = read(line, machine);
    expect(reading.writable('distributed', to)).toBe(true);
    expect(readBack(rewrite(reading, { distributed: to }), machine).spec.distributed?.value).toEqual(to);
  });

  it.each([
    [{ strategy: 'fsdp2', offload: [] }, /no stage for fsdp2/],
    [{ strategy: 'zero2', offload: ['parameters'] }, /only at ZeRO stage 3/],
    [{ strategy: 'zero2', offload: ['activations'] }, /activations/],
  ])('does not make %j of it', (wanted, reason) => {
    const to = { nodes: 1, processesPerNode: 2, ...wanted };
    expect(launch(json('')).writable('distributed', to)).toMatch(reason);
  });
});

describe('what a DeepSpeed file says beside the stage', () => {
  const flags = (more: string) => `${line} ${more}`.trim();
  const say = (text: string, more = '') => read(flags(more), { files: { 'conf/ds.json': text }, gpus: 2 });
  const codes = (text: string, more = ''): string[] =>
    say(text, more).diagnostics.map(({ code, location }) => `${code} ${location}`);

  it('brings its own optimizer', () => {
    const reading = say('{"optimizer":\n {"type": "AdamW"}}', '--optim adafactor');
    expect(said(reading, 'optim').optim).toBe('"adamw_torch_fused" <- conf/ds.json:2');
    expect(reading.diagnostics.map(({ code }) => code)).toEqual(['deepspeed-mismatch']);
  });

  it.each([
    ['{"bf16": {"enabled": true}}', '--fp16 true', ['deepspeed-mismatch conf/ds.json:1']],
    ['{"bf16": {"enabled": true}}', '--bf16 true', []],
    ['{"bf16": {"enabled": "auto"}}', '--fp16 true', []],
    ['{"fp16": {"enabled": false}}', '--fp16 true', ['deepspeed-mismatch conf/ds.json:1']],
    ['{"optimizer": {"type": "AdamW"}}', '', []],
    ['{"optimizer": {"type": "AdamW"}}', '--optim adamw_torch', []],
  ])('%s with %s: %j', (text, more, expected) => expect(codes(text, more)).toEqual(expected));
});
