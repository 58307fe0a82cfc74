import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, readBack, rewrite, words } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `# otter, supervised
model_name_or_path:   acme/otter-3b     # the small one
per_device_train_batch_size: 8
gradient_accumulation_steps: '4'   # quoted on purpose
max_length: 1536

gradient_checkpointing_kwargs: {use_reentrant: false}
use_peft: true
lora_r: 24
optim: "sgd"
`;
const machine = { files: { 'conf/sft.yaml': yaml }, gpus: 1 };

/** Lines of the copy that are not in the original, and the other way round. */
function difference(before: string, after: string): { out: string[]; in: string[] } {
  const lines = (text: string): string[] => text.split('\n');
  return {
    out: lines(before).filter((line) => !lines(after).includes(line)),
    in: lines(after).filter((line) => !lines(before).includes(line)),
  };
}

const checkpointing = (more = {}) => ({ enabled: true, useReentrant: false, everyNLayers: 1, offload: false, ...more });

describe('a rewrite of the YAML', () => {
  it.each<[string, Partial<Record<SettingName, unknown>>, string[], string[]]>([
    ['a value', { perDeviceTrainBatchSize: 2 }, ['per_device_train_batch_size: 8'], ['per_device_train_batch_size: 2']],
    [
      'a value with quotes and a comment',
      { gradientAccumulationSteps: 16 },
      ["gradient_accumulation_steps: '4'   # quoted on purpose"],
      ['gradient_accumulation_steps: 16   # quoted on purpose'],
    ],
    ['a key that was not there', { perDeviceEvalBatchSize: 1 }, [], ['per_device_eval_batch_size: 1']],
    ['a word in double quotes', { optim: 'adamw_8bit' }, ['optim: "sgd"'], ['optim: "adamw_8bit"']],
    [
      'QLoRA, with its dtype',
      {
        method: 'qlora',
        quantization: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false },
      },
      [],
      ['load_in_4bit: true', 'use_bnb_nested_quant: true', 'dtype: bfloat16'],
    ],
    ['the loss', { lossImpl: 'full' }, [], ['loss_type: nll']],
    ['Liger', { lossImpl: 'fused' }, [], ['use_liger_kernel: true']],
    ['attention', { attnImplementation: 'flash_attention_2' }, [], ['attn_implementation: flash_attention_2']],
    [
      'the offload of checkpoints',
      { gradientCheckpointing: checkpointing({ offload: true }) },
      [],
      ['gradient_checkpointing: true', 'activation_offloading: true'],
    ],
  ])('changes %s and no other byte', (_, settings, gone, come) => {
    const reading = read('trl sft --config conf/sft.yaml --seed 3', machine);
    const fitted = rewrite(reading, settings);
    expect(fitted.argv).toEqual(words('trl sft --config /copies/sft.yaml --seed 3'));
    const [file] = fitted.files;
    expect(fitted.files).toHaveLength(1);
    expect(file).toMatchObject({ source: 'conf/sft.yaml', copy: '/copies/sft.yaml', before: yaml });
    expect(difference(yaml, file!.text)).toEqual({ out: gone, in: come });
    const again = readBack(fitted, machine);
    for (const [name, to] of Object.entries(settings)) expect(again.spec[name as SettingName]?.value).toEqual(to);
  });

  it('goes past a flag that beats the file', () => {
    const reading = read('trl sft --config conf/sft.yaml --per_device_train_batch_size=6', machine);
    const fitted = rewrite(reading, { perDeviceTrainBatchSize: 3 });
    expect(fitted.argv).toEqual(words('trl sft --config conf/sft.yaml --per_device_train_batch_size=3'));
    expect(fitted.files).toEqual([]);
  });

  it('keeps the name that the file uses', () => {
    const old = { files: { 'o.yaml': 'max_seq_length: 900\ntorch_dtype: bfloat16\n' }, gpus: 1 };
    const fitted = rewrite(read('trl sft --config o.yaml', old), { maxLength: 300, dtype: 'fp16' });
    expect(fitted.files[0]!.text).toBe('max_seq_length: 300\ntorch_dtype: float16\n');
  });

  it('writes variables where the file exports them', () => {
    const text = 'seed: 1\nenv:\n  PYTORCH_CUDA_ALLOC_CONF: max_split_size_mb:96\n';
    const own = { files: { 'e.yaml': text }, gpus: 1 };
    const fitted = rewrite(read('trl sft --config e.yaml', own), { allocatorConf: 'expandable_segments:True' });
    expect(fitted.env).toEqual({});
    expect(readBack(fitted, own).env).toEqual({
      PYTORCH_CUDA_ALLOC_CONF: 'max_split_size_mb:96,expandable_segments:True',
    });
  });

  it('starts over into another folder', () => {
    const fitted = rewrite(read('trl sft --config conf/sft.yaml', machine), {}, { outputDir: '/r/again' });
    expect(difference(yaml, fitted.files[0]!.text)).toEqual({ out: [], in: ['output_dir: /r/again'] });
  });
});

describe('a rewrite of flags', () => {
  it.each<[string, Partial<Record<SettingName, unknown>>, string]>([
    ['trl sft --seed 1', { maxLength: 256 }, 'trl sft --seed 1 --max_length 256'],
    ['trl sft --packing --max-length 900', { maxLength: 256 }, 'trl sft --packing --max-length 256'],
    ['trl sft --fp16 true', { mixedPrecision: 'bf16' }, 'trl sft --fp16 false --bf16 true'],
    ['trl sft --seed 1', { lossImpl: 'chunked' }, 'trl sft --seed 1'],
    ['trl sft --loss_type nll', { lossImpl: 'chunked' }, 'trl sft --loss_type chunked_nll'],
    ['trl sft --loss_type chunked_nll', { lossImpl: 'fused' }, 'trl sft --loss_type nll --use_liger_kernel true'],
    ['trl grpo --max_completion_length 900', { maxLength: 300 }, 'trl grpo --max_completion_length 300'],
    [
      'trl sft --seed 1',
      {
        method: 'lora',
        lora: {
          r: 16,
          loraAlpha: 32,
          loraDropout: 0,
          targetModules: 'all-linear',
          adapterDtype: 'fp32',
          modulesToSave: [],
        },
      },
      'trl sft --seed 1 --use_peft true --lora_r 16 --lora_alpha 32 --lora_dropout 0 --lora_target_modules all-linear',
    ],
    [
      'trl sft --use_peft --lora_target_modules q_proj k_proj v_proj --seed 1',
      {
        lora: {
          r: 8,
          loraAlpha: 32,
          loraDropout: 0.05,
          targetModules: ['q_proj'],
          adapterDtype: 'fp32',
          modulesToSave: [],
        },
      },
      String.raw`trl sft --use_peft --lora_target_modules '.*\.q_proj' --seed 1 --lora_r 8 --lora_alpha 32 --lora_dropout 0.05`,
    ],
    [
      'accelerate launch --num_processes 2 trl/scripts/sft.py --per_device_train_batch_size 8 --bf16 true',
      { perDeviceTrainBatchSize: 4, gradientAccumulationSteps: 2 },
      'accelerate launch --num_processes 2 trl/scripts/sft.py --per_device_train_batch_size 4 --bf16 true --gradient_accumulation_steps 2',
    ],
  ])('%s', (line, settings, expected) => {
    const fitted = rewrite(read(line, { gpus: 2 }), settings);
    expect(fitted.argv).toEqual(words(expected));
    const again = readBack(fitted, { gpus: 2 });
    for (const [name, to] of Object.entries(settings)) expect(again.spec[name as SettingName]?.value).toEqual(to);
  });
});

describe('what cannot be told', () => {
  const reading = read('trl sft --config conf/sft.yaml', machine);

  it.each<[string, SettingName, unknown, RegExp]>([
    [
      'a preparation that TRL does not do',
      'quantization',
      { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: true },
      /k-bit/,
    ],
    ['another kind of adapter', 'method', 'ia3', /no ia3/],
    ['a checkpoint', 'resumeFromCheckpoint', '/r/checkpoint-2', /starts over/],
  ])('is %s', (_, setting, to, reason) => {
    expect(reading.writable(setting, to)).toMatch(reason);
  });

  it('is a field of ModelConfig in a script without it', () => {
    const text = 'from trl import TrlParser, SFTConfig\nTrlParser((SFTConfig,))\n';
    const own = read('python go.py --seed 1', { files: { 'go.py': text }, gpus: 1 });
    expect(own.writable('dtype', 'bf16')).toMatch(/ModelConfig/);
    expect(own.writable('maxLength', 256)).toBe(true);
  });

  it('is nothing at all in a script that writes its config itself', () => {
    const text = 'from trl import SFTConfig\nSFTConfig(max_length=3)\n';
    const own = read('python go.py', { files: { 'go.py': text }, gpus: 1 });
    expect(own.writable('perDeviceTrainBatchSize', 1)).toMatch(/does not parse/);
  });
});

describe('a trainer that generates', () => {
  const grpo = (flags: string): string =>
    `trl grpo --model_name_or_path acme/otter --per_device_train_batch_size 12 --num_generations 6 ${flags}`;

  it.each<[string, string, Partial<Record<SettingName, unknown>>, string[]]>([
    ['a smaller pass of the same step', '', { perDeviceTrainBatchSize: 3 }, ['- 12', '+ 3']],
    [
      'passes that are no whole groups',
      '--steps_per_generation 1',
      { perDeviceTrainBatchSize: 3 },
      ['1 passes of 3 rows are no whole number of groups of 6 completions'],
    ],
    ['passes that are', '--steps_per_generation 2', { perDeviceTrainBatchSize: 3 }, ['- 12', '+ 3']],
    [
      'a generation batch of another size',
      '--generation_batch_size 36',
      { perDeviceTrainBatchSize: 8 },
      ['generation_batch_size 36 is no multiple of 8 rows'],
    ],
    [
      'an evaluation of half a group',
      '--eval_strategy steps --per_device_eval_batch_size 6',
      { perDeviceEvalBatchSize: 3 },
      ['an evaluation batch of 3 rows is no whole number of groups of 6 completions'],
    ],
    [
      'an evaluation in groups of its own',
      '--eval_strategy steps --num_generations_eval 3 --per_device_eval_batch_size 6',
      { perDeviceEvalBatchSize: 3 },
      ['- 6', '+ 3'],
    ],
    ['no evaluation', '--per_device_eval_batch_size 6', { perDeviceEvalBatchSize: 1 }, ['- 6', '+ 1']],
  ])('%s', (_, flags, settings, expected) => {
    expect(rewritten(grpo(flags), {}, settings)).toEqual(expected);
  });
});
