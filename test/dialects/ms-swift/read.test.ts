import { describe, expect, it } from 'vitest';
import { readBareFile } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const yaml = `model: acme/otter-7b
tuner_type: lora
lora_rank: 24
target_modules: [q_proj, v_proj]
dataset:
  - fish#500
max_length: 700
per_device_train_batch_size: 3
output_dir: dens/otter
learning_rate: 1e-4
`;
const cli = 'swift sft otter.yaml';
const withYaml = (text: string, more: Machine = {}): Machine => ({ gpus: 1, files: { 'otter.yaml': text }, ...more });
const one = (line: string, name: SettingName, machine: Machine = withYaml(yaml)): string =>
  said(read(line, machine), name)[name]!;

it('a config is read with the defaults of ms-swift, which are not those of transformers', () => {
  const reading = read(cli, withYaml(yaml));
  expect(reading.stack).toEqual([{ dialect: 'ms-swift', kind: 'trainer', via: 'cli' }]);
  expect(
    said(
      reading,
      ...(['modelNameOrPath', 'objective', 'method', 'lora', 'dtype', 'mixedPrecision', 'maxLength', 'eval'] as const),
      ...(['perDeviceTrainBatchSize', 'perDeviceEvalBatchSize', 'gradientAccumulationSteps', 'optim'] as const),
      ...([
        'gradientCheckpointing',
        'attnImplementation',
        'attentionMask',
        'lossImpl',
        'dataloaderNumWorkers',
      ] as const),
    ),
  ).toEqual({
    modelNameOrPath: '"acme/otter-7b" <- otter.yaml:1',
    objective: '"sft" <- swift sft',
    method: '"lora" <- otter.yaml:2',
    lora: '{"r":24,"loraAlpha":32,"loraDropout":0.05,"targetModules":["q_proj","v_proj"],"adapterDtype":"fp32","modulesToSave":[]} <- otter.yaml:3',
    dtype: '"auto" <- default ms-swift 4.6',
    mixedPrecision: '"bf16" <- default ms-swift 4.6',
    maxLength: '700 <- otter.yaml:7',
    eval: 'false <- default ms-swift 4.6',
    perDeviceTrainBatchSize: '3 <- otter.yaml:8',
    perDeviceEvalBatchSize: '1 <- default ms-swift 4.6',
    gradientAccumulationSteps: '6 <- default ms-swift 4.6',
    optim: '"adamw_torch_fused" <- default ms-swift 4.6',
    gradientCheckpointing:
      '{"everyNLayers":1,"offload":false,"enabled":true,"useReentrant":false} <- default ms-swift 4.6',
    attnImplementation: '"sdpa" <- default ms-swift 4.6',
    attentionMask: 'true <- default ms-swift 4.6',
    lossImpl: '"full" <- default transformers 5.17',
    dataloaderNumWorkers: '1 <- default ms-swift 4.6',
  });
  expect(reading.diagnostics).toEqual([]);
  expect(reading.unread.filter((each) => each.reason !== 'no-effect-on-memory')).toEqual([]);
});

describe('flags', () => {
  const flags = 'swift sft --model acme/otter-7b --dataset a b';
  it.each<[string, SettingName, string]>([
    [`${cli} --per_device_train_batch_size 8`, 'gradientAccumulationSteps', '2 <- default ms-swift 4.6'],
    [`NPROC_PER_NODE=4 ${flags}`, 'gradientAccumulationSteps', '4 <- default ms-swift 4.6'],
    [
      `NPROC_PER_NODE=4 ${flags}`,
      'distributed',
      '{"nodes":1,"processesPerNode":4,"strategy":"ddp","offload":[]} <- env NPROC_PER_NODE',
    ],
    [
      `NNODES=2 ${flags}`,
      'distributed',
      '{"nodes":2,"processesPerNode":1,"strategy":"ddp","offload":[]} <- env NNODES',
    ],
    [
      `NPROC_PER_NODE=2 ${flags} --deepspeed zero3_offload`,
      'distributed',
      '{"nodes":1,"processesPerNode":2,"strategy":"zero3","offload":["optimizer","parameters"]} <- argv[9]',
    ],
    [
      `NPROC_PER_NODE=2 ${flags} --fsdp fsdp2`,
      'distributed',
      '{"nodes":1,"processesPerNode":2,"strategy":"fsdp2","offload":[]} <- argv[9]',
    ],
    [flags, 'maxLength', "null <- max_length, which is not set: the model's own limit"],
    [`${flags} --torch_dtype float32`, 'mixedPrecision', '"fp16" <- argv[8]'],
    [`${flags} --torch_dtype float16`, 'dtype', '"fp16" <- argv[8]'],
    [`${flags} --torch_dtype bfloat16 --bf16 false`, 'mixedPrecision', '"no" <- argv[10]'],
    [`${flags} --quant_method bnb --quant_bits 4`, 'method', '"qlora" <- argv[10]'],
    [
      `${flags} --quant_method bnb --quant_bits 4`,
      'quantization',
      '{"bits":4,"quantType":"nf4","doubleQuant":true,"computeDtype":"bf16","upcastRestToFp32":false} <- argv[10]',
    ],
    [
      `${flags} --quant_method bnb --quant_bits 4 --torch_dtype float16`,
      'quantization',
      '{"bits":4,"quantType":"nf4","doubleQuant":true,"computeDtype":"fp32","upcastRestToFp32":false} <- argv[10]',
    ],
    [`${flags} --quant_bits 4`, 'method', '"lora" <- default ms-swift 4.6'],
    [`${flags} --train_type full`, 'method', '"full" <- argv[8]'],
    [`${flags} --train_type full`, 'perDeviceEvalBatchSize', '1 <- default ms-swift 3.12'],
    [`${flags} --tuner_type adalora`, 'method', 'null <- argv[8]'],
    [`${flags} --attn_impl flash_attn --packing true --max_length 99`, 'attentionMask', 'false <- argv[10]'],
    [`${flags} --attn_impl flash_attn --packing true --packing_length 99`, 'maxLength', '99 <- argv[12]'],
    [`${flags} --attn_impl flash_attn --padding_free true`, 'paddingFree', 'true <- argv[10]'],
    [`${flags} --split_dataset_ratio 0.1`, 'eval', 'true <- argv[8]'],
    ['swift pt --model m --dataset d', 'objective', '"clm" <- swift pt'],
    ['swift rlhf --rlhf_type simpo --model m --dataset d', 'objective', '"orpo" <- argv[3]'],
    ['swift rlhf --model m --dataset d', 'objective', '"dpo" <- default ms-swift 4.6'],
    ['swift sft --model_type qwen-7b-chat --dataset d', 'maxLength', '2048 <- default ms-swift 2.6'],
    ['swift sft --model_id_or_path a/b --sft_type lora --quantization_bit 4', 'method', '"qlora" <- argv[7]'],
    ['swift sft --model_id_or_path a/b --batch_size 8', 'gradientAccumulationSteps', '2 <- default ms-swift 2.6'],
    ['swift sft --model_id_or_path a/b --use_flash_attn true', 'attnImplementation', '"flash_attention_2" <- argv[5]'],
  ])('%s: %s is %s', (line, name, expected) => {
    expect(one(line, name)).toBe(expected);
  });

  it.each([
    [`${flags} --attn_impl sdpa --packing true`, 'needs-flash'],
    [`${flags} --quant_bits 4`, 'no-effect'],
    [`${flags} --lora_rnk 4`, 'unknown-key'],
    ['swift rlhf --rlhf_type grpo --model m --dataset d', 'not-estimated'],
    ['swift sft --model_type qwen-7b-chat --dataset d', 'unknown-model'],
  ])('%s is warned of (%s)', (line, code) => {
    expect(read(line, { gpus: 1 }).diagnostics.map((each) => each.code)).toContain(code);
  });

  it('one process over two GPUs splits the layers, and a quantised full model stops', () => {
    expect(read(flags, { gpus: 2 }).diagnostics.map((each) => each.code)).toEqual(['layers-over-gpus']);
    expect(problemsOf(`${flags} --train_type full --quant_method bnb --quant_bits 4`)[0]!.code).toBe('quantized-full');
  });
});

it('a config sets variables that the environment does not', () => {
  const text = `${yaml}ENV:\n  NPROC_PER_NODE: 2\n`;
  expect(read(cli, withYaml(text, { gpus: 4 })).spec.distributed?.value?.processesPerNode).toBe(2);
  const machine = withYaml(text, { gpus: 4, environment: { NPROC_PER_NODE: '4' } });
  expect(read(cli, machine).spec.distributed?.value?.processesPerNode).toBe(4);
});

it('release 3 names its config by a flag', () => {
  expect(one('swift sft --config otter.yaml --lora_rank 5', 'lora')).toMatch(/"r":5/);
});

it('what swift does besides training is not read as training', () => {
  for (const line of ['swift infer --model m', 'swift export --model m', 'swiftly sft --model m']) {
    expect(read(line, { gpus: 1 }).stack).toEqual([]);
  }
});

it('a file alone is started by its command, and a config of another tool is not', () => {
  const command = (text: string): string => {
    const reading = readBareFile('otter.yaml', contextOf(withYaml(text)));
    return reading.ok ? reading.value.reading.command.argv.join(' ') : reading.error[0]!.message;
  };
  expect(command(yaml)).toBe(cli);
  expect(command(`${yaml}rlhf_type: kto\n`)).toBe('swift rlhf otter.yaml');
  expect(command('model: a\ndataset: b\n')).not.toMatch(/^swift/);
});
