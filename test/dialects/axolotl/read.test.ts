import { describe, expect, it } from 'vitest';
import { readLaunchPartly } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said, words } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const yaml = `base_model: acme/otter-7b
load_in_4bit: true
load_in_8bit: false
adapter: qlora
lora_model_dir:
lora_r: 24
lora_alpha: 12
lora_dropout: 0.1
lora_target_linear: true
datasets:
  - path: acme/fish
    type: alpaca
val_set_size: 0.1
evals_per_epoch: 2
sequence_len: 1_536
sample_packing: true
micro_batch_size: 3
gradient_accumulation_steps: 5
learning_rate: 2e-4
optimizer: paged_adamw_8bit
bf16: auto
gradient_checkpointing: true
attn_implementation: flash_attention_2
output_dir: dens/otter
special_tokens:
`;
const cli = 'axolotl train otter.yml';
const withYaml = (text: string, more: Machine = {}): Machine => ({
  gpus: 1,
  ...more,
  files: { 'otter.yml': text, ...more.files },
});
const one = (text: string, name: SettingName): string => said(read(cli, withYaml(text)), name)[name]!;
const told = (text: string): string =>
  read(cli, withYaml(text))
    .diagnostics.map((each) => each.message)
    .join('\n');

describe('a config', () => {
  const reading = read(cli, withYaml(yaml));

  it('is read with the defaults of axolotl', () => {
    expect(reading.stack).toEqual([{ dialect: 'axolotl', kind: 'trainer', via: 'cli' }]);
    expect(
      said(
        reading,
        ...(['modelNameOrPath', 'objective', 'method', 'lora', 'quantization', 'dtype', 'mixedPrecision'] as const),
        ...(['maxLength', 'packing', 'attentionMask', 'perDeviceTrainBatchSize', 'perDeviceEvalBatchSize'] as const),
        ...(['gradientAccumulationSteps', 'eval', 'optim', 'gradientCheckpointing', 'attnImplementation'] as const),
        ...(['lossImpl', 'maxGradNorm', 'outputDir', 'saveTotalLimit', 'dataloaderNumWorkers'] as const),
      ),
    ).toEqual({
      modelNameOrPath: '"acme/otter-7b" <- otter.yml:1',
      objective: '"sft" <- default axolotl 0.19',
      method: '"qlora" <- otter.yml:4',
      lora: '{"r":24,"loraAlpha":12,"loraDropout":0.1,"targetModules":"all-linear","adapterDtype":"fp32","modulesToSave":[]} <- otter.yml:6',
      quantization:
        '{"bits":4,"quantType":"nf4","doubleQuant":true,"computeDtype":"bf16","upcastRestToFp32":false} <- otter.yml:2',
      dtype: '"bf16" <- otter.yml:21',
      mixedPrecision: '"bf16" <- otter.yml:21',
      maxLength: '1536 <- otter.yml:15',
      packing: 'true <- otter.yml:16',
      attentionMask: 'false <- otter.yml:16',
      perDeviceTrainBatchSize: '3 <- otter.yml:17',
      perDeviceEvalBatchSize: '3 <- micro_batch_size',
      gradientAccumulationSteps: '5 <- otter.yml:18',
      eval: 'true <- otter.yml:14',
      optim: '"paged_adamw_8bit" <- otter.yml:20',
      gradientCheckpointing: '{"everyNLayers":1,"offload":false,"enabled":true,"useReentrant":true} <- otter.yml:22',
      attnImplementation: '"flash_attention_2" <- otter.yml:23',
      lossImpl: '"full" <- default axolotl 0.19',
      maxGradNorm: '1 <- default axolotl 0.19',
      outputDir: '"dens/otter" <- otter.yml:24',
      saveTotalLimit: '4 <- default axolotl 0.19',
      dataloaderNumWorkers: '1 <- default axolotl 0.19',
    });
    expect(reading.diagnostics).toEqual([]);
    expect(reading.resume.kind).toBe('supported');
    expect(new Set(reading.unread.map((each) => each.reason))).toEqual(new Set(['no-effect-on-memory']));
  });

  it('lets options of the command win, switches in the form of click', () => {
    const line = `${cli} --micro-batch-size 1 --sequence_len=900 --no-sample-packing --optimizer adamw_8bit`;
    expect(said(read(line, withYaml(yaml)), 'perDeviceTrainBatchSize', 'maxLength', 'packing', 'optim')).toEqual({
      perDeviceTrainBatchSize: '1 <- argv[4]',
      maxLength: '900 <- argv[5]',
      packing: 'false <- argv[6]',
      optim: '"adamw_8bit" <- argv[8]',
    });
  });

  it('lets options of the module win, in the form of Fire', () => {
    const line = 'python -m axolotl.cli.train otter.yml --micro_batch_size=1 --sample_packing False --load_in_4bit';
    expect(said(read(line, withYaml(yaml)), 'perDeviceTrainBatchSize', 'packing', 'quantization')).toMatchObject({
      perDeviceTrainBatchSize: '1 <- argv[4]',
      packing: 'false <- argv[6]',
    });
  });

  it('counts an option for a key that is not there only without strict', () => {
    const line = `${cli} --max-grad-norm 3`;
    expect(said(read(line, withYaml(yaml)), 'maxGradNorm').maxGradNorm).toBe('3 <- argv[4]');
    expect(said(read(line, withYaml(`${yaml}strict: true\n`)), 'maxGradNorm').maxGradNorm).toMatch(/default/);
  });
});

describe('what a key means', () => {
  it.each<[string, string, SettingName, string]>([
    ['nothing about the length', 'adapter:', 'maxLength', '512 <- default axolotl 0.19'],
    ['an empty adapter', 'adapter:', 'method', '"full" <- default axolotl 0.19'],
    ['bf16 unsaid', 'adapter:', 'dtype', '"bf16" <- default axolotl 0.19'],
    ['fp16', 'fp16: true', 'dtype', '"fp16" <- otter.yml:1'],
    ['fp16 as autocast', 'fp16: true', 'mixedPrecision', '"fp16" <- otter.yml:1'],
    ['neither', 'bf16: false', 'dtype', '"fp32" <- otter.yml:1'],
    ['no autocast', 'bf16: full', 'mixedPrecision', '"no" <- otter.yml:1'],
    ['the batch of a device', 'micro_batch_size: 2\nbatch_size: 9', 'gradientAccumulationSteps', '4 <- otter.yml:2'],
    ['a base in 8 bits', 'adapter: lora\nload_in_8bit: true', 'method', '"lora" <- otter.yml:1'],
    ['DoRA', 'adapter: lora\npeft_use_dora: true', 'method', '"dora" <- otter.yml:2'],
    ['evaluation without a time for it', 'val_set_size: 0.2', 'eval', 'false <- otter.yml:1'],
    ['evaluation by its older name', 'val_set_size: 0.2\nevaluation_strategy: steps', 'eval', 'true <- otter.yml:2'],
    ['nothing to evaluate', 'eval_steps: 9', 'eval', 'false <- default axolotl 0.19'],
    ['an older attention switch', 'flash_attention: true', 'attnImplementation', '"flash_attention_2" <- otter.yml:1'],
    [
      'attention from the hub',
      'attn_implementation: acme/flash-attn3',
      'attnImplementation',
      '"flash_attention_3" <- otter.yml:1',
    ],
    ['packing without a backend keeps a mask', 'sample_packing: true', 'attentionMask', 'true <- otter.yml:1'],
    ['preferences', 'rl: simpo', 'objective', '"orpo" <- otter.yml:1'],
    ['a reward model', 'reward_model: true', 'objective', '"reward" <- otter.yml:1'],
    ['pretraining', 'pretraining_dataset: [{path: x}]', 'objective', '"clm" <- otter.yml:1'],
    [
      'cut cross-entropy',
      'plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin',
      'lossImpl',
      '"fused" <- otter.yml:1',
    ],
    ['chunks of finished logits', 'chunked_cross_entropy: true', 'lossImpl', '"full" <- default axolotl 0.19'],
    [
      'Liger without its plugin',
      'liger_fused_linear_cross_entropy: true',
      'lossImpl',
      '"full" <- default axolotl 0.19',
    ],
    [
      'Liger',
      'plugins: [axolotl.integrations.liger.LigerPlugin]\nliger_fused_linear_cross_entropy: true',
      'lossImpl',
      '"fused" <- otter.yml:2',
    ],
    ['an optimizer of its own', 'optimizer: ao_adamw_4bit', 'optim', '"adamw_torch_4bit" <- otter.yml:1'],
    [
      'adapters left in 16 bits',
      'adapter: lora\nlora_r: 4\npeft_autocast_adapter_dtype: false',
      'lora',
      '{"r":4,"loraAlpha":8,"loraDropout":0,"targetModules":"default","adapterDtype":"bf16","modulesToSave":[]} <- otter.yml:2',
    ],
  ])('%s', (_, text, name, expected) => {
    expect(one(`${text}\n`, name)).toBe(expected);
  });

  const checkpointing = (enabled: boolean, useReentrant: boolean, offload: boolean) => ({
    enabled,
    useReentrant,
    everyNLayers: 1,
    offload,
  });

  it.each<[string, string, object]>([
    ['nothing', 'adapter:', checkpointing(false, false, false)],
    ['checkpointing', 'gradient_checkpointing: true', checkpointing(true, true, false)],
    ['checkpointing of preferences', 'gradient_checkpointing: true\nrl: dpo', checkpointing(true, false, false)],
    ['offload by its older name', 'gradient_checkpointing: offload', checkpointing(true, false, true)],
    [
      'offload in full training',
      'gradient_checkpointing: true\nactivation_offloading: true',
      checkpointing(true, false, true),
    ],
    [
      'offload in place of recomputing',
      'adapter: lora\ngradient_checkpointing: true\nactivation_offloading: legacy',
      checkpointing(false, false, true),
    ],
    [
      'offload of what is kept',
      'adapter: lora\ngradient_checkpointing: true\nactivation_offloading: hidden_states',
      checkpointing(true, false, true),
    ],
  ])('%s', (_, text, expected) => {
    expect(read(cli, withYaml(`${text}\n`)).spec.gradientCheckpointing?.value).toEqual(expected);
  });
});

describe('how it is started', () => {
  it.each<[string, string, Machine, string]>([
    ['accelerate over what is visible', cli, { gpus: 3 }, '1 × 3 ddp'],
    ['one GPU', cli, { gpus: 1 }, '1 × 1 none'],
    ['an option that goes on to the launcher', `${cli} --num-processes 2`, { gpus: 4 }, '1 × 2 ddp'],
    ['words behind two dashes', `${cli} -- --num_processes=2`, { gpus: 4 }, '1 × 2 ddp'],
    ['torchrun', `${cli} --launcher torchrun -- --nproc_per_node=4 --nnodes=2`, { gpus: 4 }, '2 × 4 ddp'],
    ['plain Python', `${cli} --launcher python`, { gpus: 1 }, '1 × 1 none'],
    [
      'a launcher around it',
      'accelerate launch --num_processes 2 -m axolotl.cli.train otter.yml',
      { gpus: 2 },
      '1 × 2 ddp',
    ],
    ['the older script', 'accelerate launch --num_processes 2 scripts/finetune.py otter.yml', { gpus: 2 }, '1 × 2 ddp'],
  ])('%s', (_, line, machine, expected) => {
    const { value } = read(line, withYaml(yaml, machine)).spec.distributed!;
    expect(`${value!.nodes} × ${value!.processesPerNode} ${value!.strategy}`).toBe(expected);
  });

  it.each<[string, string]>([
    ['axolotl train otter.yml', 'axolotl'],
    ['python -m axolotl.cli.main train otter.yml', 'axolotl'],
    ['python scripts/finetune.py otter.yml', 'axolotl'],
    ['axolotl preprocess otter.yml', 'none'],
    ['python scripts/finetune.py --lr 3', 'none'],
    ['python -m axolotl.cli.inference otter.yml', 'none'],
  ])('%s is %s', (line, trainer) => {
    const { stack } = read(line, withYaml(yaml));
    expect(stack.find((entry) => entry.kind === 'trainer')?.dialect ?? 'none').toBe(trainer);
  });

  it('sets the allocator itself, where the newer name is not set', () => {
    expect(one(yaml, 'allocatorConf')).toBe('"expandable_segments:True" <- env PYTORCH_ALLOC_CONF');
    const own = read(`PYTORCH_ALLOC_CONF=max_split_size_mb:64 ${cli}`, withYaml(yaml));
    expect(own.spec.allocatorConf?.value).toBe('max_split_size_mb:64');
  });

  it('spreads the layers of one plain process', () => {
    const { diagnostics } = read('python -m axolotl.cli.train otter.yml', withYaml(yaml, { gpus: 2 }));
    expect(diagnostics.map((each) => each.code)).toEqual(['layers-over-gpus']);
  });
});

describe('who holds what', () => {
  it('is said by a DeepSpeed file', () => {
    const files = { 'z.json': '{"zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}}' };
    const reading = read(`${cli} --deepspeed z.json`, withYaml(yaml, { gpus: 2, files }));
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['axolotl', 'deepspeed-config']);
    expect(reading.files).toEqual(['otter.yml', 'z.json']);
    expect(reading.spec.distributed?.value).toMatchObject({ strategy: 'zero2', offload: ['optimizer'] });
  });

  it.each<[string, string, string]>([
    ['FSDP without a version is the first', 'fsdp_config: {offload_params: false}', 'fsdp1 '],
    ['FSDP 2', 'fsdp_version: 2\nfsdp_config: {offload_params: true}', 'fsdp2 optimizer,parameters'],
    [
      'a version inside, names with a prefix',
      'fsdp_config: {version: 2, fsdp_offload_params: true}',
      'fsdp2 optimizer,parameters',
    ],
    ['words of a list', 'fsdp: [shard_grad_op, auto_wrap]\nfsdp_config: {use_orig_params: false}', 'zero2 '],
    [
      'replicas of shards',
      'fsdp_version: 2\ndp_replicate_size: 2\nfsdp_config: {reshard_after_forward: true}',
      'hsdp ',
    ],
    ['DeepSpeed inside the config', 'deepspeed: {zero_optimization: {stage: 3}}', 'zero3 '],
  ])('%s', (_, text, expected) => {
    const { value } = read(cli, withYaml(`${text}\n`, { gpus: 2 })).spec.distributed!;
    expect(`${value!.strategy} ${value!.offload.join()}`).toBe(expected);
  });
});

describe('embeddings, head and norms of full training', () => {
  it.each<[string, string, string]>([
    ['are fp32', 'bf16: true\n', 'true <- axolotl trains all weights'],
    [
      'also without an answer about attention',
      'bf16: auto\nattn_implementation: sdpa\n',
      'true <- axolotl trains all weights',
    ],
    ['are brought back for flash attention', 'bf16: true\nattn_implementation: flash_attention_2\n', 'absent'],
    ['are brought back beside adapters', 'bf16: true\nadapter: lora\nlora_r: 8\nlora_target_linear: true\n', 'absent'],
    ['are like everything in fp32', 'bf16: false\n', 'absent'],
    ['are left alone by FSDP', 'bf16: true\nfsdp_config: {offload_params: false}\nfsdp_version: 2\n', 'absent'],
  ])('%s', (_, text, expected) => {
    const files = { 'e.yml': `base_model: acme/otter\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\n${text}` };
    expect(said(read('axolotl train e.yml', { files, gpus: 1 }), 'embeddingsInFp32').embeddingsInFp32).toBe(expected);
  });
});

describe('what does not go', () => {
  it.each<[string, string, string, RegExp]>([
    ['a quantised model in full', cli, 'load_in_4bit: true\n', /only with an adapter/],
    ['QLoRA in 8 bits', cli, 'adapter: qlora\nload_in_8bit: true\n', /needs load_in_4bit/],
    ['no config', 'axolotl train', '', /no config/],
    ['a config elsewhere', 'axolotl train https://acme.example/otter.yml', '', /downloads/],
  ])('is an error: %s', (_, line, text, message) => {
    expect(
      problemsOf(line, withYaml(text))
        .map((each) => each.message)
        .join(),
    ).toMatch(message);
  });

  it.each<[string, string, RegExp]>([
    [
      '4 bits that are not loaded',
      'adapter: lora\nload_in_4bit: true\n',
      /load_in_4bit does nothing with adapter: lora/,
    ],
    ['a slip of the pen', 'sequence_lenn: 3\nattn_implementation: flash_attention_2\n', /has no sequence_lenn/],
    ['a part of the weights', 'unfrozen_parameters: [lm_head]\n', /unfrozen_parameters trains a part/],
    ['context parallelism', 'context_parallel_size: 4\n', /context_parallel_size 4 is not estimated/],
    ['Liger without its plugin', 'liger_fused_linear_cross_entropy: true\n', /does nothing without its plugin/],
    ['attention said twice', 'attn_implementation: sdpa\nflash_attention: true\n', /both set/],
    ['an unknown optimizer', 'optimizer: muon\n', /muon is not estimated/],
  ])('is told: %s', (_, text, message) => {
    expect(told(text)).toMatch(message);
  });

  it('says nothing of embeddings that go back to 16 bits', () => {
    expect(told('bf16: true\nattn_implementation: flash_attention_2\n')).toBe('');
    expect(told('bf16: true\nadapter: lora\nlora_r: 3\n')).toBe('');
  });

  it('keeps what the command says where files are missing', () => {
    const line =
      'accelerate launch --num_processes=4 -m axolotl.cli.train gone.yaml --deepspeed z.json --micro-batch-size=2';
    const { reading, errors } = readLaunchPartly(words(line), contextOf({}));
    expect(errors.length).toBeGreaterThan(0);
    expect(reading?.stack.map((entry) => entry.dialect)).toEqual(['accelerate', 'axolotl', 'deepspeed-config']);
    expect(said(reading!, 'perDeviceTrainBatchSize', 'maxLength')).toEqual({
      perDeviceTrainBatchSize: '2 <- argv[8]',
      maxLength: 'null <- gone.yaml:1',
    });
  });
});
