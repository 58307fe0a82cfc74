import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, rewrite } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `# otter
base_model: acme/otter-7b
load_in_8bit: false

adapter: lora     # for now
lora_model_dir:
lora_r: 24
lora_alpha: 12
lora_target_modules:
  - q_proj
  - o_proj
datasets:
  - path: acme/fish
    type: alpaca
sequence_len:   1536
micro_batch_size: 8
gradient_accumulation_steps: 2
optimizer: "adamw_torch"
bf16: auto
gradient_checkpointing: true
flash_attention: true
resume_from_checkpoint:
special_tokens:
`;
const machine = { files: { 'o.yml': yaml }, gpus: 1 };
const line = 'axolotl train o.yml --val-set-size 0.1 --evals-per-epoch=1';

const nf4 = { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false };
const int8 = { bits: 8, quantType: 'int8', doubleQuant: false, computeDtype: 'bf16', upcastRestToFp32: false };
const adapter = { r: 24, loraAlpha: 12, loraDropout: 0, adapterDtype: 'fp32', modulesToSave: [] };
const checkpointing = (more = {}) => ({ enabled: true, useReentrant: true, everyNLayers: 1, offload: false, ...more });

type Settings = Partial<Record<SettingName, unknown>>;

describe('a rewrite', () => {
  it.each<[string, Settings, string[]]>([
    [
      'batch and accumulation',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 8 },
      [
        '- micro_batch_size: 8',
        '- gradient_accumulation_steps: 2',
        '+ micro_batch_size: 2',
        '+ gradient_accumulation_steps: 8',
      ],
    ],
    ['the evaluation batch', { perDeviceEvalBatchSize: 1 }, ['+ eval_batch_size: 1']],
    ['the length', { maxLength: 512 }, ['- sequence_len:   1536', '+ sequence_len:   512']],
    ['the optimizer', { optim: 'adamw_8bit' }, ['- optimizer: "adamw_torch"', '+ optimizer: "adamw_8bit"']],
    [
      'QLoRA',
      { method: 'qlora', quantization: nf4 },
      ['- adapter: lora     # for now', '+ adapter: qlora     # for now', '+ load_in_4bit: true'],
    ],
    ['a base in 8 bits', { quantization: int8 }, ['- load_in_8bit: false', '+ load_in_8bit: true']],
    [
      'attention in its newer form',
      { attnImplementation: 'sdpa' },
      ['- flash_attention: true', '+ flash_attention: false', '+ attn_implementation: sdpa'],
    ],
    [
      'Liger with its plugin',
      { lossImpl: 'fused' },
      ['+ plugins: [axolotl.integrations.liger.LigerPlugin]', '+ liger_fused_linear_cross_entropy: true'],
    ],
    [
      'no checkpointing',
      { gradientCheckpointing: checkpointing({ enabled: false, useReentrant: false }) },
      ['- gradient_checkpointing: true', '+ gradient_checkpointing: false'],
    ],
    [
      'checkpointing without re-entry',
      { gradientCheckpointing: checkpointing({ useReentrant: false }) },
      ['+ gradient_checkpointing_kwargs:', '+   use_reentrant: false'],
    ],
    [
      'offload in place of recomputing',
      { gradientCheckpointing: checkpointing({ enabled: false, useReentrant: false, offload: true }) },
      ['+ activation_offloading: true'],
    ],
    [
      'offload beside recomputing',
      { gradientCheckpointing: checkpointing({ useReentrant: false, offload: true }) },
      ['+ activation_offloading: hidden_states'],
    ],
    [
      'other adapters',
      { lora: { ...adapter, r: 4, targetModules: 'all-linear', modulesToSave: ['lm_head'] } },
      ['- lora_r: 24', '+ lora_r: 4', '+ lora_target_linear: true', '+ lora_modules_to_save: [lm_head]'],
    ],
    [
      'other targets',
      { lora: { ...adapter, targetModules: ['k_proj'] } },
      ['- lora_target_modules:', '-   - q_proj', '-   - o_proj', '+ lora_target_modules: [k_proj]'],
    ],
    ['packing', { packing: true }, ['+ sample_packing: true']],
    [
      'clipping, workers, checkpoints kept',
      { maxGradNorm: 0.3, dataloaderNumWorkers: 0, saveTotalLimit: 2 },
      ['+ max_grad_norm: 0.3', '+ dataloader_num_workers: 0', '+ save_total_limit: 2'],
    ],
    ['a folder', { outputDir: '/r/again' }, ['+ output_dir: /r/again']],
    ['what stands already', { dtype: 'bf16', mixedPrecision: 'bf16', method: 'lora' }, []],
  ])('tells %s and leaves all else alone', (_, settings, expected) => {
    expect(rewritten(line, machine, settings)).toEqual(expected);
  });

  it.each<[string, string, string, Settings, string[]]>([
    [
      'full training becomes LoRA',
      'axolotl train o.yml',
      'adapter:\nmicro_batch_size: 1\n',
      { method: 'lora', lora: { ...adapter, targetModules: 'all-linear' } },
      ['- adapter:', '+ adapter: lora', '+ lora_r: 24', '+ lora_alpha: 12', '+ lora_target_linear: true'],
    ],
    [
      'full training becomes QLoRA, and goes on recomputing',
      'axolotl train o.yml',
      'gradient_checkpointing: true\nactivation_offloading: legacy\n',
      { method: 'qlora', quantization: nf4, lora: { ...adapter, targetModules: 'all-linear' } },
      [
        '- activation_offloading: legacy',
        '+ activation_offloading: hidden_states',
        '+ adapter: qlora',
        '+ load_in_4bit: true',
        '+ lora_r: 24',
        '+ lora_alpha: 12',
        '+ lora_target_linear: true',
      ],
    ],
    [
      'accumulation takes the place of the whole batch',
      'axolotl train o.yml',
      'micro_batch_size: 4\nbatch_size: 8\n',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 4 },
      [
        '- micro_batch_size: 4',
        '- batch_size: 8',
        '+ micro_batch_size: 2',
        '+ batch_size: null',
        '+ gradient_accumulation_steps: 4',
      ],
    ],
    [
      'a switch of the command',
      'axolotl train o.yml --sample-packing',
      'adapter:\n',
      { packing: false },
      ['- --sample-packing', '+ --no-sample-packing'],
    ],
    [
      'an option of the command',
      'axolotl train o.yml --micro-batch-size=8',
      'adapter:\n',
      { perDeviceTrainBatchSize: 2 },
      ['- --micro-batch-size=8', '+ --micro-batch-size=2'],
    ],
    [
      'a value of Fire',
      'python -m axolotl.cli.train o.yml --sample_packing True',
      'adapter:\n',
      { packing: false },
      ['- True', '+ False'],
    ],
    [
      'QLoRA back to LoRA',
      'axolotl train o.yml',
      'adapter: qlora\nload_in_4bit: true\nlora_r: 3\n',
      { method: 'lora' },
      ['- adapter: qlora', '- load_in_4bit: true', '+ adapter: lora', '+ load_in_4bit: false'],
    ],
    [
      'offload in full training',
      'axolotl train o.yml',
      'gradient_checkpointing: true\n',
      { gradientCheckpointing: checkpointing({ useReentrant: false, offload: true }) },
      ['+ activation_offloading: hidden_states'],
    ],
    [
      'cut cross-entropy off',
      'axolotl train o.yml',
      'plugins: [axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin]\n',
      { lossImpl: 'full' },
      ['+ cut_cross_entropy: false'],
    ],
  ])('%s', (_, command, text, settings, expected) => {
    expect(rewritten(command, { files: { 'o.yml': text }, gpus: 1 }, settings)).toEqual(expected);
  });

  it('goes on from a checkpoint', () => {
    const fitted = rewrite(read(line, machine), {}, { resumeFrom: '/r/checkpoint-7' });
    expect(fitted.files[0]!.text).toBe(yaml.replace('checkpoint:\n', 'checkpoint: /r/checkpoint-7\n'));
  });

  it('moves the parameters of FSDP to host RAM', () => {
    const files = { 'o.yml': 'fsdp_version: 2\nfsdp_config:\n  fsdp_offload_params: false # slow\n' };
    const to = { nodes: 1, processesPerNode: 2, strategy: 'fsdp2', offload: ['optimizer', 'parameters'] };
    expect(rewritten('axolotl train o.yml', { files, gpus: 2 }, { distributed: to })).toEqual([
      '-   fsdp_offload_params: false # slow',
      '+   fsdp_offload_params: true # slow',
    ]);
  });

  it('reaches the DeepSpeed file that the config names', () => {
    const files = { 'o.yml': 'deepspeed: z.json\n', 'z.json': '{"zero_optimization": {"stage": 2}}\n' };
    const to = { nodes: 1, processesPerNode: 2, strategy: 'zero3', offload: [] };
    expect(rewritten('axolotl train o.yml', { files, gpus: 2 }, { distributed: to })).toContain(
      '+ {"zero_optimization": {"stage": 3}}',
    );
  });
});

describe('what cannot be told', () => {
  it.each<[string, string, SettingName, unknown, RegExp]>([
    ['dtype apart from autocast', '', 'dtype', 'fp32', /one key/],
    ['autocast apart from dtype', '', 'mixedPrecision', 'no', /one key/],
    ['a chunked loss', '', 'lossImpl', 'chunked', /still holds the logits/],
    ['a fused loss of preferences', 'rl: dpo\n', 'lossImpl', 'fused', /supervised/],
    ['packed preferences', 'rl: dpo\n', 'packing', true, /preference/],
    [
      'another kind of quantization',
      'adapter: lora\n',
      'quantization',
      { ...nf4, doubleQuant: false },
      /double quantization/,
    ],
    ['k-bit preparation', 'adapter: lora\n', 'quantization', { ...nf4, upcastRestToFp32: true }, /back to 16 bits/],
    ['another compute dtype', 'adapter: lora\n', 'quantization', { ...nf4, computeDtype: 'fp16' }, /computes in bf16/],
    [
      'bitsandbytes on the shards of FSDP 2',
      'fsdp_version: 2\nfsdp_config: {offload_params: false}\n',
      'optim',
      'adamw_8bit',
      /FSDP/,
    ],
    [
      'eight bits with the offload of FSDP 1',
      'fsdp_config: {offload_params: true}\n',
      'optim',
      'adamw_torch_8bit',
      /FSDP/,
    ],
    ['attention under context parallelism', 'context_parallel_size: 2\n', 'attnImplementation', 'sdpa', /needs flash/],
    [
      're-entry beside frozen weights',
      'unfrozen_parameters: [lm_head]\n',
      'gradientCheckpointing',
      checkpointing(),
      /re-entrant/,
    ],
    ['a completion length', 'rl: grpo\n', 'maxLength', 9, /trl:/],
    ['IA³', '', 'method', 'ia3', /no ia3/],
    ['a key behind an alias', 'x: &m 4\nmicro_batch_size: *m\n', 'perDeviceTrainBatchSize', 2, /alias/],
  ])('is %s', (_, text, setting, to, reason) => {
    const own = { files: { 'o.yml': text }, gpus: 2 };
    expect(rewritten('axolotl train o.yml', own, { [setting]: to })).toEqual([expect.stringMatching(reason)]);
  });
});
