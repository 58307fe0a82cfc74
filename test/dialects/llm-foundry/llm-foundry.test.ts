import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `variables:
  rows: 900   # tokens
max_seq_len: \${variables.rows}
model:
  name: hf_causal_lm
  pretrained_model_name_or_path: acme/otter-3b
tokenizer:
  kwargs:
    model_max_length: \${variables.rows}
train_loader:
  name: finetuning
  num_workers: 3
optimizer:
  name: decoupled_lionw
global_train_batch_size: 24
device_train_microbatch_size: 4
fsdp_config:
  activation_checkpointing: true
  limit_all_gathers: true
otter: 5
`;
const machine = (text = yaml) => ({ files: { 'f.yaml': text } });
const line = 'composer -n 2 train/train.py f.yaml';
const one = (text: string, name: SettingName, command = line): string =>
  said(read(command, machine(text)), name)[name]!;

it('reads file, words and defaults, interpolations filled in', () => {
  const reading = read(`${line} device_train_microbatch_size=3 precision=amp_fp16`, machine());
  expect(reading.stack).toEqual([
    { dialect: 'llm-foundry', kind: 'trainer', via: 'cli' },
    { dialect: 'fsdp', kind: 'engine' },
  ]);
  expect(
    said(
      reading,
      ...(['modelNameOrPath', 'maxLength', 'perDeviceTrainBatchSize', 'gradientAccumulationSteps', 'dtype'] as const),
      ...(['mixedPrecision', 'optim', 'maxGradNorm', 'attnImplementation', 'distributed', 'eval'] as const),
      ...(['gradientCheckpointing', 'perDeviceEvalBatchSize', 'dataloaderNumWorkers', 'allocatorConf'] as const),
    ),
  ).toEqual({
    modelNameOrPath: '"acme/otter-3b" <- f.yaml:6',
    maxLength: '900 <- f.yaml:3',
    perDeviceTrainBatchSize: '3 <- argv[5]',
    gradientAccumulationSteps: '4 <- f.yaml:15',
    dtype: '"fp32" <- default llm-foundry 0.22',
    mixedPrecision: '"fp16" <- argv[6]',
    optim: '"lion_32bit" <- f.yaml:14',
    maxGradNorm: '0 <- default llm-foundry 0.22',
    attnImplementation: '"eager" <- default llm-foundry 0.22',
    distributed: '{"nodes":1,"processesPerNode":2,"strategy":"fsdp1","offload":[]} <- argv[2]',
    eval: 'false <- default llm-foundry 0.22',
    gradientCheckpointing: '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":false} <- f.yaml:18',
    perDeviceEvalBatchSize: '3 <- the training micro batch',
    dataloaderNumWorkers: '3 <- f.yaml:12',
    allocatorConf: '"expandable_segments:True" <- env PYTORCH_CUDA_ALLOC_CONF',
  });
  expect(reading.unread.filter((each) => each.reason === 'unknown-key').map((each) => each.key)).toEqual(['otter']);
});

it.each<[string, string, SettingName, string]>([
  [
    'flash attention wins',
    yaml.replace('  name: hf', '  use_flash_attention_2: true\n  name: hf'),
    'attnImplementation',
    '"flash_attention_2" <- f.yaml:5',
  ],
  [
    '16-bit weights',
    yaml.replace('  name: hf', '  master_weights_dtype: bf16\n  name: hf'),
    'dtype',
    '"bf16" <- f.yaml:5',
  ],
  ['text is packed', yaml.replace('name: finetuning', 'name: text'), 'packing', 'true <- f.yaml:11'],
  [
    'so is a ratio',
    yaml.replace('  num_workers: 3', '  dataset:\n    packing_ratio: auto'),
    'packing',
    'true <- f.yaml:13',
  ],
  [
    'a micro batch above the share is cut',
    yaml.replace('size: 4', 'size: 400'),
    'perDeviceTrainBatchSize',
    '12 <- f.yaml:16',
  ],
  [
    'FSDP by halves',
    yaml.replace('  limit', '  sharding_strategy: SHARD_GRAD_OP\n  limit'),
    'distributed',
    '{"nodes":1,"processesPerNode":2,"strategy":"zero2","offload":[]} <- argv[2]',
  ],
  [
    'adapters',
    yaml.replace('  name: hf', '  peft_config: {r: 5, target_modules: [q_proj]}\n  name: hf'),
    'method',
    '"lora" <- f.yaml:5',
  ],
])('%s', (_, text, name, expected) => {
  expect(one(text, name)).toBe(expected);
});

it('drops FSDP and its checkpointing where one process runs alone', () => {
  const reading = read('composer -n 1 train/train.py f.yaml', machine());
  expect(said(reading, 'distributed', 'gradientCheckpointing')).toEqual({
    distributed: '{"nodes":1,"processesPerNode":1,"strategy":"ddp","offload":[]} <- argv[2]',
    gradientCheckpointing:
      '{"enabled":false,"useReentrant":true,"everyNLayers":1,"offload":false} <- default llm-foundry 0.22',
  });
  expect(reading.diagnostics[0]).toMatchObject({ code: 'fsdp-dropped', location: 'f.yaml:17' });
});

it('leaves a searched batch alone', () => {
  const reading = read(line, machine(yaml.replace('size: 4', 'size: auto')));
  expect(reading.spec.perDeviceTrainBatchSize?.value).toBeNull();
  expect(reading.diagnostics[0]).toMatchObject({ code: 'auto-find-batch-size', location: 'f.yaml:16' });
  expect(reading.writable('gradientAccumulationSteps', 2)).toBe(
    'the micro batch is searched for, and accumulation follows',
  );
});

it('refuses a step that GPUs cannot share, and needs no other file of that ending', () => {
  expect(problemsOf('composer -n 5 train/train.py f.yaml', machine())[0]!.code).toBe('batch-size');
  expect(read('composer otter.py f.yaml', machine('fish: 3\n')).stack).toEqual([]);
});

describe('a rewrite', () => {
  it.each<[string, string, Partial<Record<SettingName, unknown>>, string[]]>([
    [
      'splits the same step',
      yaml,
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 6 },
      ['- device_train_microbatch_size: 4', '+ device_train_microbatch_size: 2'],
    ],
    [
      'changes the variable that places are filled in from',
      yaml,
      { maxLength: 450 },
      ['-   rows: 900   # tokens', '+   rows: 450   # tokens'],
    ],
    [
      'changes every place without one',
      yaml.replaceAll(/\$\{.*\}/g, '900'),
      { maxLength: 450 },
      ['- max_seq_len: 900', '-     model_max_length: 900', '+ max_seq_len: 450', '+     model_max_length: 450'],
    ],
    [
      'takes flash attention',
      yaml,
      { attnImplementation: 'flash_attention_2' },
      ['+   attn_implementation: flash_attention_2'],
    ],
    [
      'stops recomputing',
      yaml,
      { gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false } },
      [
        '-   activation_checkpointing: true',
        '+   activation_checkpointing: false',
        '+   activation_cpu_offload: false',
      ],
    ],
    ['has no optimizer of fewer bits', yaml, { optim: 'adamw_8bit' }, ['LLM Foundry cannot be told optim']],
  ])('%s', (_, text, settings, expected) => {
    expect(rewritten(line, machine(text), settings)).toEqual(expected);
  });

  it('changes the word of the command that wins', () => {
    expect(rewritten(`${line} device_train_microbatch_size=12`, machine(), { perDeviceTrainBatchSize: 6 })).toEqual([
      '- device_train_microbatch_size=12',
      '+ device_train_microbatch_size=6',
    ]);
  });
});
