import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, rewrite, words } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `checkpoint_dir: checkpoints/meta-llama/Llama-3.2-3B # base
out_dir: dens/otter
precision:
lora_r: 24
lora_query: true
train:
  global_batch_size:   12   # rows a step
  micro_batch_size: 6
`;
const machine = { files: { 'o.yaml': yaml }, gpus: 1 };
const line = 'litgpt finetune_lora --config o.yaml --train.max_seq_length=700';
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
  loraAlpha: 16,
  loraDropout: 0.05,
  targetModules: ['q_proj', 'v_proj'],
  adapterDtype: 'fp32',
  modulesToSave: [],
  ...more,
});
type Settings = Partial<Record<SettingName, unknown>>;

describe('a rewrite', () => {
  it.each<[string, Settings, string[]]>([
    [
      'the micro batch, accumulation follows',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 6 },
      ['-   micro_batch_size: 6', '+   micro_batch_size: 2'],
    ],
    [
      'accumulation alone',
      { gradientAccumulationSteps: 3 },
      ['-   global_batch_size:   12   # rows a step', '+   global_batch_size:   18   # rows a step'],
    ],
    ['the length', { maxLength: 300 }, ['- --train.max_seq_length=700', '+ --train.max_seq_length=300']],
    [
      'QLoRA, with the precision it needs',
      { method: 'qlora', quantization: nf4() },
      ['- precision:', '+ precision: bf16-true', '+ quantize: bnb.nf4-dq'],
    ],
    [
      'QLoRA in one step of scales',
      { quantization: nf4({ doubleQuant: false }) },
      ['- precision:', '+ precision: bf16-true', '+ quantize: bnb.nf4'],
    ],
    ['8-bit states', { optim: 'adamw_bnb_8bit' }, ['+ optimizer: bitsandbytes.optim.AdamW8bit']],
    ['weights in 16 bits', { dtype: 'bf16', mixedPrecision: 'no' }, ['- precision:', '+ precision: bf16-true']],
    [
      'adapters everywhere',
      { lora: adapter({ r: 4, targetModules: 'all-linear' }) },
      ['- lora_r: 24', '+ lora_r: 4', '+ lora_key: true', '+ lora_projection: true', '+ lora_mlp: true'],
    ],
    ['a folder', { outputDir: '/r/2' }, ['- out_dir: dens/otter', '+ out_dir: /r/2']],
    ['nothing at all', { maxGradNorm: 0, attnImplementation: 'sdpa', packing: false }, []],
  ])('tells %s and leaves all else alone', (_, settings, expected) => {
    expect(rewritten(line, machine, settings)).toEqual(expected);
  });

  it('goes to the command where there is no file, and keeps a class with arguments', () => {
    const flags = 'litgpt finetune_full org/m --devices 1';
    expect(rewritten(flags, { gpus: 1 }, { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 4 })).toEqual([
      '+ --train.micro_batch_size',
      '+ 2',
      '+ --train.global_batch_size',
      '+ 8',
    ]);
    const own = {
      files: { 'o.yaml': `${yaml}optimizer:\n  class_path: torch.optim.AdamW\n  init_args: {lr: 0.1}\n` },
      gpus: 1,
    };
    expect(rewritten(line, own, { optim: 'paged_adamw_8bit' })).toEqual([
      '-   class_path: torch.optim.AdamW',
      '+   class_path: bitsandbytes.optim.PagedAdamW8bit',
    ]);
  });

  it('goes on from the file of a step where all weights are trained', () => {
    const fitted = rewrite(read('litgpt finetune_full org/m', { gpus: 1 }), {}, { resumeFrom: 'out/step-000010' });
    expect(fitted.argv).toEqual(words('litgpt finetune_full org/m --resume out/step-000010/lit_model.pth'));
  });
});

describe('what cannot be told', () => {
  const full = 'litgpt finetune_full org/m';
  it.each<[string, string, SettingName, unknown, RegExp]>([
    [
      'checkpointing on one device',
      line,
      'gradientCheckpointing',
      { enabled: true, useReentrant: false, everyNLayers: 1, offload: false },
      /several devices/,
    ],
    ['clipping', line, 'maxGradNorm', 1, /only in pretraining/],
    ['full training', line, 'method', 'full', /another command/],
    ['a quantised full model', full, 'quantization', nf4(), /only a base with LoRA/],
    ['QLoRA over two devices', `${line} --devices 2`, 'quantization', nf4(), /one device/],
    [
      'another optimizer of a quantised model',
      `${line} --precision bf16-true --quantize bnb.nf4`,
      'optim',
      'adamw_bnb_8bit',
      /paged AdamW/,
    ],
    ['fp16 in pretraining', 'litgpt pretrain pythia-160m', 'dtype', 'fp16', /pretrains in bf16/],
    ['adapters of another dtype', line, 'lora', adapter({ adapterDtype: 'bf16' }), /held in fp32/],
    ['half an MLP', line, 'lora', adapter({ targetModules: ['up_proj'] }), /in just these layers/],
    ['a whole loss', line, 'lossImpl', 'full', /decides the loss/],
    ['an own batch for evaluation', line, 'perDeviceEvalBatchSize', 1, /micro_batch_size/],
    ['a checkpoint of adapters', line, 'resumeFromCheckpoint', 'x', /only the adapter/],
  ])('is %s', (_, command, setting, to, reason) => {
    expect(rewritten(command, machine, { [setting]: to })).toEqual([expect.stringMatching(reason)]);
  });
});
