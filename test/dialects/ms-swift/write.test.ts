import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `# otter
model: acme/otter-7b   # base
tuner_type: lora
lora_rank: 24
dataset: [fish, crab]
per_device_train_batch_size:  8
gradient_accumulation_steps: 2
torch_dtype: bfloat16
`;
const machine = { files: { 'o.yaml': yaml }, gpus: 1 };
const line = 'swift sft o.yaml --max_length 700';
const nf4 = (more = {}) => ({
  bits: 4,
  quantType: 'nf4',
  doubleQuant: true,
  computeDtype: 'bf16',
  upcastRestToFp32: false,
  ...more,
});
const adapter = (more = {}) => ({
  r: 24,
  loraAlpha: 32,
  loraDropout: 0.05,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
  ...more,
});
type Settings = Partial<Record<SettingName, unknown>>;

it.each<[string, Settings, string[]]>([
  [
    'batch and accumulation',
    { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 8 },
    [
      '- per_device_train_batch_size:  8',
      '- gradient_accumulation_steps: 2',
      '+ per_device_train_batch_size:  2',
      '+ gradient_accumulation_steps: 8',
    ],
  ],
  ['the length', { maxLength: 300 }, ['- 700', '+ 300']],
  [
    'QLoRA, with the method beside the bits',
    { method: 'qlora', quantization: nf4() },
    ['+ quant_method: bnb', '+ quant_bits: 4'],
  ],
  [
    'QLoRA of another kind',
    { quantization: nf4({ quantType: 'fp4', doubleQuant: false }) },
    ['+ quant_method: bnb', '+ quant_bits: 4', '+ bnb_4bit_quant_type: fp4', '+ bnb_4bit_use_double_quant: false'],
  ],
  ['flash attention', { attnImplementation: 'flash_attention_2' }, ['+ attn_impl: flash_attn']],
  ['8-bit states', { optim: 'paged_adamw_8bit' }, ['+ optim: paged_adamw_8bit']],
  [
    'no checkpointing',
    { gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false } },
    ['+ gradient_checkpointing: false'],
  ],
  ['full training', { method: 'full' }, ['- tuner_type: lora', '+ tuner_type: full']],
  [
    'other adapters',
    { lora: adapter({ r: 4, targetModules: ['q_proj', 'o_proj'] }) },
    ['- lora_rank: 24', '+ lora_rank: 4', '+ target_modules: [q_proj, o_proj]'],
  ],
  ['Liger', { lossImpl: 'fused' }, ['+ use_liger_kernel: true']],
  ['a checkpoint', { resumeFromCheckpoint: '/r/c-7' }, ['+ resume_from_checkpoint: /r/c-7']],
  ['a folder', { outputDir: '/r/2' }, ['+ output_dir: /r/2']],
])('tells %s and leaves all else alone', (_, settings, expected) => {
  expect(rewritten(line, machine, settings)).toEqual(expected);
});

it('keeps the words of an older release', () => {
  const two = 'swift sft --model_id_or_path a/b --sft_type lora --batch_size 8 --dataset d';
  expect(
    rewritten(two, { gpus: 1 }, { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 9, method: 'qlora' }),
  ).toEqual([
    '- 8',
    '+ 2',
    '+ --gradient_accumulation_steps',
    '+ 9',
    '+ --quant_method',
    '+ bnb',
    '+ --quantization_bit',
    '+ 4',
  ]);
  const three = 'swift sft --model a/b --train_type full --dataset d';
  expect(rewritten(three, { gpus: 1 }, { method: 'lora' })).toEqual(['- full', '+ lora']);
});

describe('what cannot be told', () => {
  it.each<[string, string, SettingName, unknown, RegExp]>([
    ['packing without flash attention', line, 'packing', true, /flash attention/],
    ['k-bit preparation', line, 'quantization', nf4({ upcastRestToFp32: true }), /k-bit/],
    ['LoRA of what is quantised', `${line} --quant_method bnb --quant_bits 4`, 'method', 'lora', /taken out/],
    [
      'eager attention of packed rows',
      `${line} --attn_impl flash_attn --packing true`,
      'attnImplementation',
      'eager',
      /flash attention/,
    ],
    ['a chunked loss', line, 'lossImpl', 'chunked', /no chunked loss/],
    ['a list of targets for each architecture', line, 'lora', adapter({ targetModules: 'default' }), /list of targets/],
  ])('is %s', (_, command, setting, to, reason) => {
    expect(rewritten(command, machine, { [setting]: to })).toEqual([expect.stringMatching(reason)]);
  });
});
