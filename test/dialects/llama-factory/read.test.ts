import { describe, expect, it } from 'vitest';
import { readLaunchPartly } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said, words } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const yaml = `### otter
model_name_or_path: acme/otter-7b
stage: sft
finetuning_type: lora
lora_rank: 24
lora_target: q_proj,o_proj
dataset: fish
template: default
cutoff_len: 1536
output_dir: dens/otter
per_device_train_batch_size: 3
gradient_accumulation_steps: 5
bf16: true
learning_rate: 1e-4
`;
const cli = 'llamafactory-cli train otter.yaml';
const withYaml = (text: string, more: Machine = {}): Machine => ({ gpus: 1, files: { 'otter.yaml': text }, ...more });
const one = (text: string, name: SettingName, line = cli): string => said(read(line, withYaml(text)), name)[name]!;

describe('a config', () => {
  const reading = read(cli, withYaml(yaml));

  it('is read with the defaults of LLaMA-Factory and of transformers', () => {
    expect(reading.stack).toEqual([{ dialect: 'llama-factory', kind: 'trainer', via: 'cli' }]);
    expect(
      said(
        reading,
        ...(['modelNameOrPath', 'objective', 'method', 'lora', 'dtype', 'mixedPrecision', 'maxLength'] as const),
        ...(['perDeviceTrainBatchSize', 'perDeviceEvalBatchSize', 'gradientAccumulationSteps', 'eval'] as const),
        ...(['gradientCheckpointing', 'attnImplementation', 'packing', 'lossImpl', 'optim', 'distributed'] as const),
      ),
    ).toEqual({
      modelNameOrPath: '"acme/otter-7b" <- otter.yaml:2',
      objective: '"sft" <- otter.yaml:3',
      method: '"lora" <- otter.yaml:4',
      lora: '{"r":24,"loraAlpha":48,"loraDropout":0,"targetModules":["q_proj","o_proj"],"adapterDtype":"fp32","modulesToSave":[]} <- otter.yaml:5',
      dtype: '"auto" <- default llamafactory 0.9.5',
      mixedPrecision: '"bf16" <- otter.yaml:13',
      maxLength: '1536 <- otter.yaml:9',
      perDeviceTrainBatchSize: '3 <- otter.yaml:11',
      perDeviceEvalBatchSize: '8 <- default transformers 5.17',
      gradientAccumulationSteps: '5 <- otter.yaml:12',
      eval: 'false <- default transformers 5.17',
      gradientCheckpointing:
        '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":false} <- default llamafactory 0.9.5',
      attnImplementation: '"sdpa" <- default llamafactory 0.9.5',
      packing: 'false <- default llamafactory 0.9.5',
      lossImpl: '"full" <- default llamafactory 0.9.5',
      optim: '"adamw_torch_fused" <- default transformers 5.17',
      distributed: '{"nodes":1,"processesPerNode":1,"strategy":"none","offload":[]} <- the visible GPUs',
    });
    expect(reading.files).toEqual(['otter.yaml']);
    expect(reading.resume.kind).toBe('supported');
    expect(reading.diagnostics).toEqual([]);
    expect(new Set(reading.unread.map((each) => each.reason))).toEqual(new Set(['no-effect-on-memory']));
  });

  it('lets words of the command win, typed as OmegaConf types them', () => {
    const line = `${cli} per_device_train_batch_size=1 quantization_bit=4 flash_attn=fa2 lora_target=all additional_target=`;
    const { spec } = read(line, withYaml(yaml));
    expect(said({ ...reading, spec }, 'perDeviceTrainBatchSize', 'method', 'attnImplementation')).toEqual({
      perDeviceTrainBatchSize: '1 <- argv[3]',
      method: '"qlora" <- argv[4]',
      attnImplementation: '"flash_attention_2" <- argv[5]',
    });
    expect(spec.lora?.value).toMatchObject({ targetModules: 'all-linear', modulesToSave: [] });
    expect(spec.quantization?.value).toEqual({
      bits: 4,
      quantType: 'nf4',
      doubleQuant: true,
      computeDtype: 'bf16',
      upcastRestToFp32: false,
    });
  });

  it('may be JSON', () => {
    const files = { 'o.json': '{\n "stage": "dpo",\n "cutoff_len": 700\n}' };
    expect(said(read('lmf train o.json', { files, gpus: 1 }), 'objective', 'maxLength')).toEqual({
      objective: '"dpo" <- o.json:2',
      maxLength: '700 <- o.json:3',
    });
  });
});

describe('what a key means', () => {
  it.each<[string, string, SettingName, string]>([
    [
      'full training holds fp32',
      'finetuning_type: full\nbf16: true',
      'dtype',
      '"fp32" <- trained weights are cast to fp32',
    ],
    ['pure bf16 does not', 'finetuning_type: full\npure_bf16: true', 'dtype', '"bf16" <- otter.yaml:2'],
    ['pure bf16 is no autocast', 'pure_bf16: true', 'mixedPrecision', '"no" <- default transformers 5.17'],
    [
      'a block optimizer leaves it alone',
      'finetuning_type: full\nuse_badam: true',
      'dtype',
      '"auto" <- default llamafactory 0.9.5',
    ],
    ['length', 'stage: sft', 'maxLength', '2048 <- default llamafactory 0.9.5'],
    ['pretraining packs', 'stage: pt', 'packing', 'true <- otter.yaml:1'],
    ['neat packing packs', 'neat_packing: true', 'packing', 'true <- otter.yaml:1'],
    [
      'neat packing with flash attention has no mask',
      'neat_packing: true\nflash_attn: fa2',
      'attentionMask',
      'false <- otter.yaml:1',
    ],
    ['packing alone has one', 'packing: true\nflash_attn: fa2', 'attentionMask', 'true <- default llamafactory 0.9.5'],
    ['attention off', 'flash_attn: disabled', 'attnImplementation', '"eager" <- otter.yaml:1'],
    ['attention as a switch', 'flash_attn: true', 'attnImplementation', '"flash_attention_2" <- otter.yaml:1'],
    ['a loss without a reference', 'stage: dpo\npref_loss: simpo', 'objective', '"orpo" <- otter.yaml:2'],
    ['a reward model', 'stage: rm', 'objective', '"reward" <- otter.yaml:1'],
    ['Liger', 'enable_liger_kernel: true', 'lossImpl', '"fused" <- otter.yaml:1'],
    ['Liger where logits are needed', 'stage: kto\nenable_liger_kernel: true', 'lossImpl', '"full" <- otter.yaml:1'],
    ['nothing to evaluate', 'eval_strategy: steps', 'eval', 'false <- default llamafactory 0.9.5'],
    ['evaluation', 'eval_strategy: steps\nval_size: 0.2', 'eval', 'true <- otter.yaml:1'],
    [
      'GaLore',
      'finetuning_type: full\nuse_galore: true\noptim: adamw_8bit',
      'optim',
      '"galore_adamw_8bit" <- otter.yaml:2',
    ],
    ['DoRA', 'use_dora: true', 'method', '"dora" <- otter.yaml:1'],
    [
      'eight bits',
      'quantization_bit: 8',
      'quantization',
      '{"bits":8,"quantType":"int8","doubleQuant":false,"computeDtype":"bf16","upcastRestToFp32":false} <- otter.yaml:1',
    ],
    [
      'checkpointing off',
      'disable_gradient_checkpointing: true',
      'gradientCheckpointing',
      '{"enabled":false,"useReentrant":false,"everyNLayers":1,"offload":false} <- otter.yaml:1',
    ],
    [
      'checkpointing off, and on again by the trainer',
      'disable_gradient_checkpointing: true\ngradient_checkpointing: true',
      'gradientCheckpointing',
      '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":false} <- otter.yaml:2',
    ],
    [
      'the switch of transformers alone changes nothing',
      'gradient_checkpointing: false',
      'gradientCheckpointing',
      '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":false} <- default llamafactory 0.9.5',
    ],
    [
      'what is kept goes to host RAM',
      'use_unsloth_gc: true',
      'gradientCheckpointing',
      '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":true} <- otter.yaml:1',
    ],
  ])('%s', (_, text, name, expected) => {
    expect(one(`${text}\n`, name)).toBe(expected);
  });

  it('is one of the trained weights, which DeepSpeed holds itself at stage 3', () => {
    const ds = '{"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}';
    const files = { 'otter.yaml': 'finetuning_type: full\nbf16: true\ndeepspeed: z.json\n', 'z.json': ds };
    const reading = read(`FORCE_TORCHRUN=1 NPROC_PER_NODE=4 ${cli}`, { files });
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['llama-factory', 'deepspeed-config']);
    expect(said(reading, 'dtype', 'distributed')).toEqual({
      dtype: '"auto" <- default llamafactory 0.9.5',
      distributed: '{"nodes":1,"processesPerNode":4,"strategy":"zero3","offload":["parameters"]} <- z.json:1',
    });
  });
});

describe('how it is started', () => {
  it.each<[string, string, Machine, string]>([
    ['one GPU', cli, { gpus: 1 }, '1 × 1 none'],
    ['several GPUs', cli, { gpus: 3 }, '1 × 3 ddp'],
    ['one GPU of several', `CUDA_VISIBLE_DEVICES=2 ${cli}`, { gpus: 8 }, '1 × 1 none'],
    ['torchrun by force', `FORCE_TORCHRUN=1 ${cli}`, { gpus: 1 }, '1 × 1 ddp'],
    ['nodes', `FORCE_TORCHRUN=1 NNODES=2 NODE_RANK=0 ${cli}`, { gpus: 4 }, '2 × 4 ddp'],
    ['a launcher', 'torchrun --nproc-per-node 2 src/train.py otter.yaml', { gpus: 2 }, '1 × 2 ddp'],
    ['accelerate', 'accelerate launch --num_processes 4 src/train.py otter.yaml', { gpus: 4 }, '1 × 4 ddp'],
  ])('%s', (_, line, machine, expected) => {
    const { value } = read(line, withYaml(yaml, machine)).spec.distributed!;
    expect(`${value!.nodes} × ${value!.processesPerNode} ${value!.strategy}`).toBe(expected);
  });

  it('does not know how many GPUs there are without a machine', () => {
    expect(read(cli, withYaml(yaml, { gpus: undefined })).spec.distributed?.value).toBeNull();
  });

  it('sets the allocator where it starts torchrun, unless that is switched off', () => {
    const two = withYaml(yaml, { gpus: 2 });
    expect(one(yaml, 'allocatorConf')).toBe('absent');
    expect(said(read(cli, two), 'allocatorConf').allocatorConf).toMatch(/^"expandable_segments:True"/);
    expect(said(read(`OPTIM_TORCH=0 ${cli}`, two), 'allocatorConf').allocatorConf).toBe('absent');
  });

  it.each<[string, string, Machine, RegExp]>([
    ['a plain process with several GPUs', 'python src/train.py otter.yaml', { gpus: 2 }, /sees 2 GPUs/],
    [
      'DeepSpeed in a plain process',
      cli,
      { gpus: 1, files: { 'otter.yaml': 'deepspeed: z.json\n', 'z.json': '{}' } },
      /plain process/,
    ],
  ])('says that %s will stop', (_, line, machine, message) => {
    const { diagnostics } = read(line, withYaml(yaml, machine));
    expect(diagnostics.map((each) => each.message).join()).toMatch(message);
  });

  it.each<[string, string, string]>([
    ['llamafactory-cli train otter.yaml', '', 'llama-factory'],
    ['/opt/env/bin/lmf train otter.yaml', '', 'llama-factory'],
    ['python -m llamafactory.cli train otter.yaml', '', 'llama-factory'],
    ['python src/train_bash.py --stage sft', '', 'llama-factory'],
    ['python go.py otter.yaml', 'from llamafactory.train.tuner import run_exp\n', 'llama-factory'],
    ['llamafactory-cli chat otter.yaml', '', 'none'],
    ['python src/train.py --lr 3', '', 'none'],
    ['python src/train.py otter.yaml', 'import lightning\n', 'none'],
  ])('%s is %s', (line, script, trainer) => {
    const name = /\S+\.py/.exec(line)?.[0];
    const files = { 'otter.yaml': yaml, ...(script !== '' && name ? { [name]: script } : {}) };
    const stack = read(line, { files, gpus: 1 }).stack;
    expect(stack.find((entry) => entry.kind === 'trainer')?.dialect ?? 'none').toBe(trainer);
  });

  it('takes flags of the older script with the defaults of its time', () => {
    const line =
      'python src/train_bash.py --stage sft --finetuning_type lora --lora_rank 12 --fp16 --quantization_bit 4';
    expect(said(read(line, { gpus: 1 }), 'maxLength', 'mixedPrecision', 'method', 'dataloaderNumWorkers')).toEqual({
      maxLength: '1024 <- default llamafactory 0.7',
      mixedPrecision: '"fp16" <- argv[8]',
      method: '"qlora" <- argv[10]',
      dataloaderNumWorkers: '0 <- default transformers 5.17',
    });
  });
});

describe('what does not go', () => {
  it.each<[string, string, RegExp]>([
    ['a quantised model in full', 'finetuning_type: full\nquantization_bit: 4\n', /only with finetuning_type lora/],
    ['a word for a number', 'per_device_train_batch_size: many\n', /expected a whole number/],
  ])('is an error: %s', (_, text, message) => {
    expect(
      problemsOf(cli, withYaml(text))
        .map((each) => each.message)
        .join(),
    ).toMatch(message);
  });

  it.each<[string, string, RegExp]>([
    ['a key that nobody knows', 'cutof_len: 3\n', /has no cutof_len/],
    ['a key of an older release', 'checkpoint_dir: x\n', /called adapter_name_or_path/],
    ['another quantization', 'quantization_bit: 4\nquantization_method: hqq\n', /by hqq is not estimated/],
    ['freezing', 'finetuning_type: freeze\n', /freeze trains a part/],
    ['an optimizer of its own', 'use_muon: true\n', /use_muon takes an optimizer/],
    ['a kernel library', 'use_unsloth: true\n', /use_unsloth: Unsloth/],
  ])('is told: %s', (_, text, message) => {
    expect(
      read(cli, withYaml(text))
        .diagnostics.map((each) => each.message)
        .join(),
    ).toMatch(message);
  });

  it('does not resume the whole of a reward model', () => {
    expect(read(cli, withYaml('stage: rm\nfinetuning_type: full\n')).resume.kind).toBe('unsupported');
    expect(read(cli, withYaml('stage: rm\n')).resume.kind).toBe('supported');
  });

  it('keeps what the command says where the file is missing', () => {
    const line = 'CUDA_VISIBLE_DEVICES=0 llamafactory-cli train gone.yaml quantization_bit=4 cutoff_len=99';
    const { reading, errors } = readLaunchPartly(words(line), contextOf({}));
    expect(errors.map((each) => each.location)).toEqual(['gone.yaml']);
    expect(said(reading!, 'maxLength', 'method', 'perDeviceTrainBatchSize')).toEqual({
      maxLength: '99 <- argv[5]',
      method: '"qlora" <- argv[4]',
      perDeviceTrainBatchSize: 'null <- gone.yaml:1',
    });
  });
});
