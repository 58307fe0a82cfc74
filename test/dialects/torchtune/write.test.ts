import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, rewrite } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const yaml = `output_dir: dens/otter   # where it goes
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_3b # the small one
  lora_attn_modules: ['q_proj', 'v_proj']
  lora_rank: 24
  lora_alpha: 48
tokenizer:
  max_seq_len: 1536
checkpointer:
  checkpoint_dir: /models/otter
  output_dir: \${output_dir}
dataset:
  packed: False
batch_size: 8
gradient_accumulation_steps:   2
optimizer:
  _component_: torch.optim.AdamW
  fused: True
  lr: 3e-4
dtype: bf16
`;
/** OmegaConf's way to say: the value of that key. */
const gap = (key: string): string => `$\{${key}}`;
const machine = { files: { 'o.yaml': yaml }, gpus: 1 };
const line = 'tune run lora_finetune_single_device --config o.yaml compile=True';
const with_ = (from: string, to: string) => ({ files: { 'o.yaml': yaml.replace(from, to) }, gpus: 1 });

type Settings = Partial<Record<SettingName, unknown>>;
const checkpointing = (more = {}) => ({ enabled: true, useReentrant: false, everyNLayers: 1, offload: false, ...more });
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
  loraAlpha: 48,
  loraDropout: 0,
  targetModules: ['q_proj', 'v_proj'],
  adapterDtype: 'bf16',
  modulesToSave: [],
  ...more,
});

describe('a rewrite', () => {
  it.each<[string, Settings, string[]]>([
    [
      'batch and accumulation',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 8 },
      [
        '- batch_size: 8',
        '- gradient_accumulation_steps:   2',
        '+ batch_size: 2',
        '+ gradient_accumulation_steps:   8',
      ],
    ],
    ['the length', { maxLength: 512 }, ['-   max_seq_len: 1536', '+   max_seq_len: 512']],
    ['packing', { packing: true }, ['-   packed: False', '+   packed: true']],
    ['checkpointing', { gradientCheckpointing: checkpointing() }, ['+ enable_activation_checkpointing: true']],
    [
      'checkpoints in host RAM',
      { gradientCheckpointing: checkpointing({ offload: true }) },
      ['+ enable_activation_checkpointing: true', '+ enable_activation_offloading: true'],
    ],
    [
      'QLoRA',
      { method: 'qlora', quantization: nf4() },
      [
        '-   _component_: torchtune.models.llama3_2.lora_llama3_2_3b # the small one',
        '+   _component_: torchtune.models.llama3_2.qlora_llama3_2_3b # the small one',
      ],
    ],
    [
      'an optimizer that is not fused',
      { optim: 'paged_adamw_8bit' },
      [
        '+ ~optimizer.fused',
        '-   _component_: torch.optim.AdamW',
        '+   _component_: bitsandbytes.optim.PagedAdamW8bit',
      ],
    ],
    ['AdamW one by one', { optim: 'adamw_torch' }, ['-   fused: True', '+   fused: false']],
    [
      'other adapters',
      { lora: adapter({ r: 4, targetModules: 'all-linear' }) },
      [
        "-   lora_attn_modules: ['q_proj', 'v_proj']",
        '-   lora_rank: 24',
        '+   lora_attn_modules: [q_proj, k_proj, v_proj, output_proj]',
        '+   lora_rank: 4',
        '+   apply_lora_to_mlp: true',
      ],
    ],
    [
      'adapters of the head',
      { lora: adapter({ targetModules: ['q_proj', 'v_proj', 'lm_head'] }) },
      ['+   apply_lora_to_output: true'],
    ],
    ['DoRA', { method: 'dora' }, ['+   use_dora: true']],
    ['clipping', { maxGradNorm: 1 }, ['+ clip_grad_norm: 1']],
    ['another dtype', { dtype: 'fp32' }, ['- dtype: bf16', '+ dtype: fp32']],
    [
      'a folder',
      { outputDir: '/r/again' },
      ['- output_dir: dens/otter   # where it goes', '+ output_dir: /r/again   # where it goes'],
    ],
    ['nothing at all', { mixedPrecision: 'no', attnImplementation: 'sdpa', lossImpl: 'full' }, []],
  ])('tells %s and leaves all else alone', (_, settings, expected) => {
    expect(rewritten(line, machine, settings)).toEqual(expected);
  });

  it('goes into the word that says it, and to the command where the file cannot be edited', () => {
    expect(rewritten(`${line} batch_size=6`, machine, { perDeviceTrainBatchSize: 2 })).toEqual([
      '- batch_size=6',
      '+ batch_size=2',
    ]);
    const alias = with_('batch_size: 8', 'rows: &rows 4\nbatch_size: *rows');
    expect(rewritten(line, alias, { perDeviceTrainBatchSize: 2 })).toEqual(['+ batch_size=2']);
    expect(rewritten(line, with_('max_seq_len: 1536', `max_seq_len: ${gap('batch_size')}`), { maxLength: 99 })).toEqual(
      ['+ tokenizer.max_seq_len=99'],
    );
  });

  it('goes to the command where the config comes with torchtune', () => {
    const own = 'tune run lora_finetune_single_device --config llama3_1/8B_lora_single_device';
    expect(
      rewritten(
        own,
        { gpus: 1 },
        { perDeviceTrainBatchSize: 1, gradientAccumulationSteps: 16, method: 'qlora', optim: 'paged_adamw_8bit' },
      ),
    ).toEqual([
      '+ batch_size=1',
      '+ gradient_accumulation_steps=16',
      '+ model._component_=torchtune.models.llama3_1.qlora_llama3_1_8b',
      '+ optimizer._component_=bitsandbytes.optim.PagedAdamW8bit',
      '+ ~optimizer.fused',
    ]);
  });

  it('says quantize_base where there is no builder for it, and takes both back', () => {
    const qwen = with_('llama3_2.lora_llama3_2_3b', 'qwen2.lora_qwen2_7b');
    expect(rewritten(line, qwen, { method: 'qlora' })).toEqual(['+   quantize_base: true']);
    const four = with_('.lora_llama3', '.qlora_llama3');
    expect(rewritten(line, four, { method: 'lora' })).toEqual([
      '-   _component_: torchtune.models.llama3_2.qlora_llama3_2_3b # the small one',
      '+   _component_: torchtune.models.llama3_2.lora_llama3_2_3b # the small one',
    ]);
  });

  it('takes a fused that the command says out of the command', () => {
    const own = with_('  fused: True\n', '');
    expect(rewritten(`${line} optimizer.fused=True`, own, { optim: 'adamw_bnb_8bit' })).toEqual([
      '- optimizer.fused=True',
      '-   _component_: torch.optim.AdamW',
      '+   _component_: bitsandbytes.optim.AdamW8bit',
    ]);
  });

  it('offloads what is sharded', () => {
    const to = { nodes: 1, processesPerNode: 2, strategy: 'fsdp2', offload: ['optimizer', 'parameters'] };
    const many = 'tune run --nproc_per_node 2 lora_finetune_distributed --config o.yaml';
    expect(rewritten(many, machine, { distributed: to })).toEqual(['+ fsdp_cpu_offload: true']);
  });

  it('starts over in a folder of its own', () => {
    const fitted = rewrite(read(line, machine), {}, { outputDir: '/r/2' });
    expect(fitted.files[0]!.text).toBe(yaml.replace('output_dir: dens/otter', 'output_dir: /r/2'));
    const old = with_(gap('output_dir'), '/old/place');
    expect(rewrite(read(line, old), {}, { outputDir: '/r/2' }).files[0]!.text).toContain('  output_dir: /r/2\n');
  });
});

describe('what cannot be told', () => {
  it.each<[string, string, string, SettingName, unknown, RegExp]>([
    ['full training', '', '', 'method', 'full', /different recipes/],
    ['LoRA of a full recipe', '.lora_llama', '.llama', 'method', 'lora', /different recipes/],
    ['fp16', '', '', 'dtype', 'fp16', /does not train in fp16/],
    ['autocast', '', '', 'mixedPrecision', 'bf16', /without autocast/],
    ['flash attention', '', '', 'attnImplementation', 'flash_attention_2', /chooses the attention/],
    ['a fused loss', '', '', 'lossImpl', 'fused', /no fused loss/],
    ['re-entry', '', '', 'gradientCheckpointing', checkpointing({ useReentrant: true }), /without re-entry/],
    [
      'offload alone',
      '',
      '',
      'gradientCheckpointing',
      checkpointing({ enabled: false, offload: true }),
      /checkpointing keeps/,
    ],
    ['8 bits', '', '', 'quantization', nf4({ bits: 8, quantType: 'int8', doubleQuant: false }), /nf4/],
    [
      'accumulation inside the backward pass',
      '.lora_llama',
      '.llama',
      'gradientAccumulationSteps',
      4,
      /optimizer_in_bwd/,
    ],
    ['an unknown optimizer', '', '', 'optim', 'lomo', /not known to have/],
    ['fp32 adapters', '', '', 'lora', adapter({ adapterDtype: 'fp32' }), /held in bf16/],
    ['the third layer', '', '', 'lora', adapter({ targetModules: ['gate_proj'] }), /in just these layers/],
    ['packing of endless rows', 'max_seq_len: 1536', 'max_seq_len: null', 'packing', true, /max_seq_len/],
    ['a checkpoint', '', '', 'resumeFromCheckpoint', '/r/epoch_0', /whole epoch/],
  ])('is %s', (_, from, to, setting, value, reason) => {
    const bwd = setting === 'gradientAccumulationSteps';
    const text =
      yaml.replace(from, to).replace('steps:   2', bwd ? 'steps: 1' : 'steps:   2') +
      (bwd ? 'optimizer_in_bwd: True\n' : '');
    const own = bwd ? line.replace('lora_', 'full_') : line;
    expect(rewritten(own, { files: { 'o.yaml': text }, gpus: 1 }, { [setting]: value })).toEqual([
      expect.stringMatching(reason),
    ]);
  });
});
