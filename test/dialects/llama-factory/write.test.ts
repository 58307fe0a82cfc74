import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, rewrite, words } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `# otter
model_name_or_path: acme/otter-7b   # the small one
stage: sft

### method
finetuning_type: lora
lora_rank: 24
lora_target: "q_proj,o_proj"
cutoff_len:   1536
output_dir: dens/otter
per_device_train_batch_size: 8
gradient_accumulation_steps: 2
bf16: true
warmup_ratio: 0.1
`;
const machine = { files: { 'o.yaml': yaml }, gpus: 1 };
const line = 'llamafactory-cli train o.yaml optim=sgd';

const checkpointing = (more = {}) => ({ enabled: true, useReentrant: true, everyNLayers: 1, offload: false, ...more });
const nf4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false };
const adapter = { r: 24, loraAlpha: 48, loraDropout: 0, adapterDtype: 'fp32', modulesToSave: [] };

type Settings = Partial<Record<SettingName, unknown>>;

describe('a rewrite', () => {
  it.each<[string, Settings, string[]]>([
    [
      'batch and accumulation',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 8 },
      [
        '- per_device_train_batch_size: 8',
        '- gradient_accumulation_steps: 2',
        '+ per_device_train_batch_size: 2',
        '+ gradient_accumulation_steps: 8',
      ],
    ],
    ['a key that was not there', { perDeviceEvalBatchSize: 1 }, ['+ per_device_eval_batch_size: 1']],
    ['the length', { maxLength: 512 }, ['- cutoff_len:   1536', '+ cutoff_len:   512']],
    ['a word of the command', { optim: 'adamw_8bit' }, ['- optim=sgd', '+ optim=adamw_8bit']],
    ['a paged optimizer', { optim: 'paged_adamw_8bit' }, ['- optim=sgd', '+ optim=paged_adamw_8bit']],
    ['QLoRA', { method: 'qlora', quantization: nf4 }, ['+ quantization_bit: 4']],
    [
      'QLoRA of another kind',
      { method: 'qlora', quantization: { ...nf4, quantType: 'fp4', doubleQuant: false } },
      ['+ quantization_bit: 4', '+ quantization_type: fp4', '+ double_quantization: false'],
    ],
    ['flash attention', { attnImplementation: 'flash_attention_2' }, ['+ flash_attn: fa2']],
    ['eager attention', { attnImplementation: 'eager' }, ['+ flash_attn: disabled']],
    ['Liger', { lossImpl: 'fused' }, ['+ enable_liger_kernel: true']],
    [
      'no checkpointing',
      { gradientCheckpointing: checkpointing({ enabled: false, useReentrant: false }) },
      ['+ disable_gradient_checkpointing: true'],
    ],
    [
      'checkpointing without re-entry',
      { gradientCheckpointing: checkpointing({ useReentrant: false }) },
      ['+ use_reentrant_gc: false'],
    ],
    [
      'checkpoints in host RAM',
      { gradientCheckpointing: checkpointing({ offload: true }) },
      ['+ use_unsloth_gc: true'],
    ],
    [
      'other adapters',
      { lora: { ...adapter, r: 4, loraAlpha: 9, targetModules: 'all-linear', modulesToSave: ['lm_head'] } },
      [
        '- lora_rank: 24',
        '- lora_target: "q_proj,o_proj"',
        '+ lora_rank: 4',
        '+ lora_target: "all"',
        '+ lora_alpha: 9',
        '+ additional_target: lm_head',
      ],
    ],
    ['DoRA', { method: 'dora' }, ['+ use_dora: true']],
    ['packing', { packing: true }, ['+ packing: true']],
    ['precision', { mixedPrecision: 'fp16' }, ['- bf16: true', '+ bf16: false', '+ fp16: true']],
    [
      'workers and pinning',
      { dataloaderNumWorkers: 3, dataloaderPinMemory: false },
      ['+ dataloader_num_workers: 3', '+ dataloader_pin_memory: false'],
    ],
    ['a folder', { outputDir: '/r/again' }, ['- output_dir: dens/otter', '+ output_dir: /r/again']],
    ['nothing at all', { lossImpl: 'full', attnImplementation: 'sdpa' }, ['+ flash_attn: sdpa']],
  ])('tells %s and leaves all else alone', (_, settings, expected) => {
    expect(rewritten(line, machine, settings)).toEqual(expected);
  });

  it.each<[string, string, Settings, string[]]>([
    [
      'full training becomes LoRA',
      'finetuning_type: full\nbf16: true\n',
      { method: 'lora', lora: { ...adapter, r: 16, loraAlpha: 32, targetModules: 'all-linear' } },
      ['- finetuning_type: full', '+ finetuning_type: lora', '+ lora_rank: 16', '+ lora_alpha: 32'],
    ],
    ['full training in pure bf16', 'finetuning_type: full\n', { dtype: 'bf16' }, ['+ pure_bf16: true']],
    [
      'what was quantised is no longer',
      'quantization_bit: 4\n',
      { method: 'lora' },
      ['- quantization_bit: 4', '+ quantization_bit: null'],
    ],
    [
      'Liger off',
      'enable_liger_kernel: true\n',
      { lossImpl: 'full' },
      ['- enable_liger_kernel: true', '+ enable_liger_kernel: false'],
    ],
  ])('%s', (_, text, settings, expected) => {
    expect(rewritten('lmf train o.yaml', { files: { 'o.yaml': text }, gpus: 1 }, settings)).toEqual(expected);
  });

  it('goes into flags where there is no file', () => {
    const flags = 'python src/train_bash.py --stage sft --per_device_train_batch_size 8 --bf16';
    expect(rewritten(flags, { gpus: 1 }, { perDeviceTrainBatchSize: 2, maxLength: 300, method: 'qlora' })).toEqual([
      '- 8',
      '+ 2',
      '+ --cutoff_len',
      '+ 300',
      '+ --quantization_bit',
      '+ 4',
    ]);
  });

  it('takes a value of the command back to nothing', () => {
    expect(rewritten('lmf train o.yaml quantization_bit=4', machine, { method: 'lora' })).toEqual([
      '- quantization_bit=4',
      '+ quantization_bit=null',
    ]);
  });

  it('goes on from a checkpoint', () => {
    const fitted = rewrite(read(line, machine), {}, { resumeFrom: '/r/checkpoint-7' });
    expect(fitted.argv).toEqual(words('llamafactory-cli train /copies/o.yaml optim=sgd'));
    expect(fitted.files[0]!.text).toBe(`${yaml}resume_from_checkpoint: /r/checkpoint-7\n`);
  });

  it('reaches the DeepSpeed file that the config names', () => {
    const files = {
      'o.yaml': 'deepspeed: z.json\n',
      'z.json': '{\n  "zero_optimization": {\n    "stage": 2\n  }\n}\n',
    };
    const to = { nodes: 1, processesPerNode: 2, strategy: 'zero2', offload: ['optimizer'] };
    expect(rewritten('FORCE_TORCHRUN=1 lmf train o.yaml', { files, gpus: 2 }, { distributed: to })).toEqual([
      '-     "stage": 2',
      '+     "stage": 2,',
      '+     "offload_optimizer": {"device":"cpu"}',
      '- deepspeed: z.json',
      '+ deepspeed: z.json',
    ]);
  });
});

describe('what cannot be told', () => {
  it.each<[string, string, SettingName, unknown, RegExp]>([
    ['another dtype of frozen weights', '', 'dtype', 'fp16', /dtype of the checkpoint/],
    ['a chunked loss', '', 'lossImpl', 'chunked', /no chunked loss/],
    ['a fused loss of preferences', 'stage: dpo\n', 'lossImpl', 'fused', /logits of all tokens/],
    ['flex attention', '', 'attnImplementation', 'flex_attention', /no flex_attention/],
    ['k-bit preparation', '', 'quantization', { ...nf4, upcastRestToFp32: true }, /k-bit/],
    ['a compute dtype beside the precision', '', 'quantization', { ...nf4, computeDtype: 'fp16' }, /computes in bf16/],
    [
      'an optimizer under GaLore',
      'finetuning_type: full\nuse_galore: true\n',
      'optim',
      'adamw_8bit',
      /use_galore decides/,
    ],
    ['LoRA under GaLore', 'finetuning_type: full\nuse_galore: true\n', 'method', 'lora', /does not go with LoRA/],
    ['precision under pure bf16', 'pure_bf16: true\n', 'mixedPrecision', 'fp16', /takes the place/],
    ['every other layer', '', 'gradientCheckpointing', checkpointing({ everyNLayers: 2 }), /every layer or none/],
    ['a length split in two', 'max_source_length: 9\nmax_target_length: 9\n', 'maxLength', 8, /split between/],
  ])('is %s', (_, text, setting, to, reason) => {
    const own = { files: { 'o.yaml': text }, gpus: 1 };
    expect(rewritten('lmf train o.yaml', own, { [setting]: to })).toEqual([expect.stringMatching(reason)]);
  });
});
