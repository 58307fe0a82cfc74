import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const run = (task: string, flags: string): string =>
  `torchrun --nproc-per-node 4 -m openrlhf.cli.train_${task} --pretrain acme/otter ${flags}`;
const one = (line: string, name: SettingName): string => said(read(line), name)[name]!;

it('reads flags with dots and their defaults', () => {
  const line =
    'torchrun --nproc-per-node 4 -m openrlhf.cli.train_sft --model.model_name_or_path acme/otter --train.micro_batch_size 2 --data.max_len 700 --otter 3';
  const reading = read(line);
  expect(reading.stack.map((entry) => entry.dialect)).toEqual(['torchrun', 'openrlhf']);
  expect(
    said(
      reading,
      ...(['modelNameOrPath', 'objective', 'method', 'dtype', 'perDeviceTrainBatchSize'] as const),
      ...(['gradientAccumulationSteps', 'maxLength', 'attnImplementation', 'distributed', 'lossImpl'] as const),
    ),
  ).toEqual({
    modelNameOrPath: '"acme/otter" <- argv[6]',
    objective: '"sft" <- argv[4]',
    method: '"full" <- default openrlhf 0.11',
    dtype: '"bf16" <- default openrlhf 0.11',
    perDeviceTrainBatchSize: '2 <- argv[8]',
    gradientAccumulationSteps: '16 <- default openrlhf 0.11',
    maxLength: '700 <- argv[10]',
    attnImplementation: '"flash_attention_2" <- default openrlhf 0.11',
    distributed: '{"nodes":1,"processesPerNode":4,"strategy":"zero2","offload":[]} <- argv[2]',
    lossImpl: '"full" <- default openrlhf 0.11',
  });
  expect(reading.unread).toEqual([{ key: 'otter', origin: { kind: 'argv', index: 12 }, reason: 'unknown-key' }]);
});

it.each<[string, string, string, SettingName, string]>([
  ['release 0.9 by its names', 'dpo', '', 'maxLength', '512 <- default openrlhf 0.9'],
  ['before 0.8 attention is eager', 'sft', '--bf16', 'attnImplementation', '"eager" <- default openrlhf 0.7'],
  ['before 0.8 without --bf16 it is fp16', 'sft', '--flash_attn', 'dtype', '"fp16" <- default openrlhf 0.7'],
  [
    'packing needs a flash kernel',
    'sft',
    '--packing_samples --attn_implementation eager',
    'attnImplementation',
    '"flash_attention_2" <- argv[7]',
  ],
  ['packing drops the mask', 'sft', '--packing_samples', 'attentionMask', 'false <- argv[7]'],
  ['pretraining', 'sft', '--pretrain_mode', 'objective', '"clm" <- argv[7]'],
  [
    'an optimizer in host RAM',
    'sft',
    '--zero_stage 3 --adam_offload',
    'distributed',
    '{"nodes":1,"processesPerNode":4,"strategy":"zero3","offload":["optimizer"]} <- argv[2]',
  ],
  ['Liger fuses modules and no loss', 'sft', '--use_liger_kernel', 'lossImpl', '"full" <- default openrlhf 0.9'],
  ['a rank', 'sft', '--lora_rank 8', 'method', '"lora" <- argv[8]'],
  ['four bits', 'sft', '--lora_rank 8 --load_in_4bit', 'method', '"qlora" <- argv[9]'],
  [
    'accumulation is rounded down',
    'sft',
    '--train_batch_size 100 --micro_train_batch_size 8',
    'gradientAccumulationSteps',
    '3 <- argv[8]',
  ],
  ['rings share rows', 'sft', '--ring_attn_size 2', 'gradientAccumulationSteps', '8 <- default openrlhf 0.9'],
])('%s', (_, task, flags, name, expected) => {
  expect(one(run(task, flags), name)).toBe(expected);
});

it('says what it leaves out and what cannot be', () => {
  expect(read(run('dpo', '--lora_rank 4')).diagnostics.map((each) => each.code)).toEqual(['not-estimated']);
  expect(problemsOf(run('sft', '--load_in_4bit'))[0]).toMatchObject({ code: 'quantized-full', location: 'argv[7]' });
  expect(problemsOf(run('sft', '--train_batch_size 8'))[0]!.code).toBe('batch-too-small');
});

it('is no other module of that name', () => {
  const line = 'torchrun --nproc-per-node 4 -m otter.cli.train_sft --micro_train_batch_size 2';
  expect(read(line).stack.map((entry) => entry.dialect)).toEqual(['torchrun']);
});

describe('a rewrite', () => {
  it.each<[string, string, Partial<Record<SettingName, unknown>>, string[]]>([
    [
      'splits the same step, in one place',
      '--micro_train_batch_size 8',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 16 },
      ['- 8', '+ 2'],
    ],
    [
      'says by the rest alone',
      '--micro_train_batch_size=8',
      { gradientAccumulationSteps: 32 },
      ['- --micro_train_batch_size=8', '+ --micro_train_batch_size=1'],
    ],
    [
      'does not split unevenly',
      '--train_batch_size 24 --micro_train_batch_size 6',
      { perDeviceTrainBatchSize: 4 },
      ['a step of 24 rows on 4 GPUs cannot be split into passes of 4'],
    ],
    ['keeps the spelling', '--max_len 900', { maxLength: 450 }, ['- 900', '+ 450']],
    [
      'turns a switch on',
      '--max_len 900',
      { gradientCheckpointing: { enabled: true, useReentrant: false, everyNLayers: 1, offload: false } },
      ['+ --gradient_checkpointing'],
    ],
    ['turns a switch off', '--lora_rank 8 --load_in_4bit', { method: 'lora' }, ['- --load_in_4bit']],
    [
      'shards more',
      '--zero_stage 2',
      { distributed: { nodes: 1, processesPerNode: 4, strategy: 'zero3', offload: ['optimizer'] } },
      ['- 2', '+ 3', '+ --adam_offload'],
    ],
  ])('%s', (_, flags, settings, expected) => {
    expect(rewritten(run('sft', flags), {}, settings)).toEqual(expected);
  });
});
