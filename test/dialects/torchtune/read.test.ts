import { describe, expect, it } from 'vitest';
import { readBareFile } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const yaml = `# otters
output_dir: dens/otter
model:
  _component_: torchtune.models.llama3_2.lora_llama3_2_3b
  lora_attn_modules: ['q_proj', 'output_proj']
  apply_lora_to_mlp: True
  lora_rank: 24
  lora_alpha: 48
tokenizer:
  _component_: torchtune.models.llama3.llama3_tokenizer
  path: /models/otter/tokenizer.model
  max_seq_len: 1536
checkpointer:
  _component_: torchtune.training.FullModelHFCheckpointer
  checkpoint_dir: /models/otter
  output_dir: \${output_dir}
resume_from_checkpoint: False
dataset:
  _component_: torchtune.datasets.alpaca_dataset
  packed: False
batch_size: 3
gradient_accumulation_steps: 5
optimizer:
  _component_: torch.optim.AdamW
  fused: True
  lr: 3e-4
loss:
  _component_: torchtune.modules.loss.CEWithChunkedOutputLoss
clip_grad_norm: 0.5
compile: False
dtype: bf16
enable_activation_checkpointing: True
enable_activation_offloading: False
metric_logger:
  _component_: torchtune.training.metric_logging.DiskLogger
`;
const cli = 'tune run lora_finetune_single_device --config otter.yaml';
const withYaml = (text: string, more: Machine = {}): Machine => ({ gpus: 2, files: { 'otter.yaml': text }, ...more });
const one = (text: string, name: SettingName, line = cli): string => said(read(line, withYaml(text)), name)[name]!;
/** OmegaConf's way to say: the value of that key. */
const gap = (key: string): string => `$\{${key}}`;
const changed = (from: string, to: string): string => {
  expect(yaml).toContain(from);
  return yaml.replace(from, to);
};

describe('a config', () => {
  const reading = read(cli, withYaml(yaml));

  it('says nearly all itself', () => {
    expect(reading.stack).toEqual([{ dialect: 'torchtune', kind: 'trainer', via: 'cli' }]);
    expect(
      said(
        reading,
        ...(['modelNameOrPath', 'objective', 'method', 'lora', 'dtype', 'mixedPrecision', 'maxLength'] as const),
        ...(['perDeviceTrainBatchSize', 'perDeviceEvalBatchSize', 'gradientAccumulationSteps', 'eval'] as const),
        ...(['gradientCheckpointing', 'attnImplementation', 'packing', 'lossImpl', 'optim', 'maxGradNorm'] as const),
        ...(['outputDir', 'distributed', 'quantization'] as const),
      ),
    ).toEqual({
      modelNameOrPath: '"meta-llama/Llama-3.2-3B" <- otter.yaml:4',
      objective: '"sft" <- recipe lora_finetune_single_device',
      method: '"lora" <- otter.yaml:4',
      lora: '{"r":24,"loraAlpha":48,"loraDropout":0,"targetModules":["q_proj","o_proj","gate_proj","up_proj","down_proj"],"adapterDtype":"bf16","modulesToSave":[]} <- otter.yaml:7',
      dtype: '"bf16" <- otter.yaml:31',
      mixedPrecision: '"no" <- otter.yaml:31',
      maxLength: '1536 <- otter.yaml:12',
      perDeviceTrainBatchSize: '3 <- otter.yaml:21',
      perDeviceEvalBatchSize: '3 <- batch_size',
      gradientAccumulationSteps: '5 <- otter.yaml:22',
      eval: 'false <- default torchtune 0.6.1',
      gradientCheckpointing: '{"enabled":true,"useReentrant":false,"everyNLayers":1,"offload":false} <- otter.yaml:32',
      attnImplementation: '"sdpa" <- default torchtune 0.6.1',
      packing: 'false <- otter.yaml:20',
      lossImpl: '"chunked_logits" <- otter.yaml:28',
      optim: '"adamw_torch_fused" <- otter.yaml:24',
      maxGradNorm: '0.5 <- otter.yaml:29',
      outputDir: '"dens/otter" <- otter.yaml:16',
      distributed:
        '{"nodes":1,"processesPerNode":1,"strategy":"none","offload":[]} <- tune run without options of torchrun',
      quantization: 'absent',
    });
    expect(reading.files).toEqual(['otter.yaml']);
    expect(reading.resume.kind).toBe('unsupported');
    expect(reading.diagnostics.map((each) => each.message)).toEqual([
      '/models/otter is not on this machine: the model is taken for meta-llama/Llama-3.2-3B, by its builder llama3_2_3b',
    ]);
    expect(reading.unread.filter((each) => each.reason !== 'no-effect-on-memory')).toEqual([]);
  });

  it('is beaten by words of the command', () => {
    const line = `${cli} batch_size=4 model.lora_rank=64 optimizer=bitsandbytes.optim.PagedAdamW8bit ~optimizer.fused clip_grad_norm=None`;
    expect(said(read(line, withYaml(yaml)), 'perDeviceTrainBatchSize', 'lora', 'optim', 'maxGradNorm')).toEqual({
      perDeviceTrainBatchSize: '4 <- argv[5]',
      lora: expect.stringMatching(/"r":64.* <- argv\[6\]$/),
      optim: '"paged_adamw_8bit" <- argv[7]',
      maxGradNorm: '0 <- argv[9]',
    });
  });

  it.each<[string, SettingName, string, string, string]>([
    ['QLoRA by its builder', 'method', '.lora_llama', '.qlora_llama', '"qlora" <- otter.yaml:4'],
    ['QLoRA by a switch', 'method', 'lora_rank: 24', 'quantize_base: True', '"qlora" <- otter.yaml:7'],
    ['DoRA', 'method', 'lora_rank: 24', 'use_dora: True', '"dora" <- otter.yaml:7'],
    ['no adapter', 'method', '.lora_llama', '.llama', '"full" <- otter.yaml:4'],
    ['a length that nobody cuts', 'maxLength', 'max_seq_len: 1536', 'max_seq_len: null', 'null <- otter.yaml:12'],
    [
      'packed rows by flex attention',
      'attnImplementation',
      'packed: False',
      'packed: True',
      '"flex_attention" <- otter.yaml:20',
    ],
    [
      'a whole loss',
      'lossImpl',
      'torchtune.modules.loss.CEWithChunkedOutputLoss',
      'torch.nn.CrossEntropyLoss',
      '"full" <- otter.yaml:28',
    ],
    ['AdamW one by one', 'optim', 'fused: True', 'fused: False', '"adamw_torch" <- otter.yaml:24'],
    [
      'an 8-bit AdamW of torchao',
      'optim',
      'torch.optim.AdamW',
      'torchao.prototype.low_bit_optim.AdamW8bit',
      '"adamw_torch_8bit" <- otter.yaml:24',
    ],
    ['a class that nobody knows', 'optim', 'torch.optim.AdamW', 'dens.Otter', 'null <- otter.yaml:24'],
    ['a measured norm', 'maxGradNorm', 'clip_grad_norm: 0.5', "clip_grad_norm: 'inf'", '0 <- otter.yaml:29'],
    [
      'checkpoints in host RAM',
      'gradientCheckpointing',
      'offloading: False',
      'offloading: True',
      '{"enabled":true,"useReentrant":false,"everyNLayers":1,"offload":true} <- otter.yaml:32',
    ],
    ['fp32', 'dtype', 'dtype: bf16', 'dtype: fp32', '"fp32" <- otter.yaml:31'],
    [
      'all linear layers',
      'lora',
      "['q_proj', 'output_proj']",
      "['q_proj', 'k_proj', 'v_proj', 'output_proj']",
      '{"r":24,"loraAlpha":48,"loraDropout":0,"targetModules":"all-linear","adapterDtype":"bf16","modulesToSave":[]} <- otter.yaml:7',
    ],
    [
      'the head, too',
      'lora',
      'apply_lora_to_mlp: True',
      'apply_lora_to_output: True',
      '{"r":24,"loraAlpha":48,"loraDropout":0,"targetModules":["q_proj","o_proj","lm_head"],"adapterDtype":"bf16","modulesToSave":[]} <- otter.yaml:7',
    ],
  ])('knows %s', (_, name, from, to, expected) => {
    expect(one(changed(from, to), name)).toBe(expected);
  });

  it('finds a value that stands elsewhere in the file', () => {
    expect(one(changed('batch_size: 3', `rows: 7\nbatch_size: ${gap('rows')}`), 'perDeviceTrainBatchSize')).toBe(
      '7 <- otter.yaml:22',
    );
  });

  it('takes the folder of the checkpoint where it is there', () => {
    const files = { 'otter.yaml': yaml, '/models/otter/config.json': '{}' };
    expect(said(read(cli, { files, gpus: 1 }), 'modelNameOrPath').modelNameOrPath).toBe(
      '"/models/otter" <- otter.yaml:15',
    );
  });

  it('goes by the name of the folder where nobody knows the builder', () => {
    const own = changed('torchtune.models.llama3_2.lora_llama3_2_3b', 'dens.build_otter');
    expect(one(own, 'modelNameOrPath')).toBe('"/models/otter" <- otter.yaml:15');
  });

  it('quantises and keeps adapters in the dtype of the run', () => {
    const reading = read(cli, withYaml(changed('.lora_llama', '.qlora_llama').replace('dtype: bf16', 'dtype: fp32')));
    expect(reading.spec.quantization?.value).toEqual({
      bits: 4,
      quantType: 'nf4',
      doubleQuant: true,
      computeDtype: 'fp32',
      upcastRestToFp32: false,
    });
    expect(reading.spec.lora?.value?.adapterDtype).toBe('fp32');
  });
});

it('reduces gradients after every micro batch', () => {
  expect(
    read('tune run lora_finetune_single_device --config otter.yaml', withYaml(yaml)).spec.syncsEachMicroBatch?.value,
  ).toBe(true);
});

describe('a step inside the backward pass', () => {
  const full = yaml
    .replace('.lora_llama', '.llama')
    .replace('gradient_accumulation_steps: 5', 'gradient_accumulation_steps: 1')
    .replace('clip_grad_norm: 0.5', 'optimizer_in_bwd: True');
  const line = 'tune run full_finetune_single_device --config otter.yaml';

  it('frees gradients as it goes', () => {
    expect(one(full, 'optimizerInBackward', line)).toBe('true <- otter.yaml:29');
  });

  it('is nothing to a recipe that does not look at it', () => {
    expect(one(full.replace('.llama3_2_3b', '.lora_llama3_2_3b'), 'optimizerInBackward')).toBe('absent');
  });

  it.each([
    ['accumulation', full.replace('steps: 1', 'steps: 2'), 'optimizer_in_bwd needs gradient_accumulation_steps: 1'],
    ['clipping', `${full}clip_grad_norm: 1.0\n`, 'optimizer_in_bwd needs clip_grad_norm: null'],
  ])('does not go with %s', (_, text, message) => {
    expect(problemsOf(line, withYaml(text))[0]!.message).toBe(message);
  });
});

describe('processes', () => {
  const line = 'tune run --nproc_per_node 4 lora_finetune_distributed --config otter.yaml';

  it.each<[string, string, string]>([
    ['', '{"nodes":1,"processesPerNode":4,"strategy":"fsdp2","offload":[]}', 'shards over every process'],
    [
      'fsdp_cpu_offload=True',
      '{"nodes":1,"processesPerNode":4,"strategy":"fsdp2","offload":["optimizer","parameters"]}',
      'offloads',
    ],
    [
      'fsdp_reshard_after_forward=False',
      '{"nodes":1,"processesPerNode":4,"strategy":"zero2","offload":[]}',
      'keeps parameters whole',
    ],
    [
      'data_parallel_replicate_dim=2',
      '{"nodes":1,"processesPerNode":4,"strategy":"hsdp","offload":[]}',
      'shards inside groups',
    ],
  ])('%s %s: %s', (word, expected) => {
    expect(read(`${line} ${word}`.trim(), withYaml(yaml)).spec.distributed?.value).toEqual(JSON.parse(expected));
  });

  it('are told by torchrun and by no option of a single-device recipe', () => {
    expect(problemsOf(line.replace('distributed', 'single_device'), withYaml(yaml))[0]!.message).toMatch(
      /in one process/,
    );
    const lonely = read('tune run lora_finetune_distributed --config otter.yaml', withYaml(yaml));
    expect(lonely.diagnostics.map((each) => each.code)).toContain('not-distributed');
  });

  it('may come from a launcher in front of a copied recipe', () => {
    const script = 'from torchtune import config\n@config.parse\ndef recipe_main(cfg): ...\n';
    const machine = withYaml(yaml, { files: { 'otter.yaml': yaml, 'recipes/mine_lora_distributed.py': script } });
    const reading = read('torchrun --nproc-per-node 2 recipes/mine_lora_distributed.py --config otter.yaml', machine);
    expect(reading.stack.map((each) => each.dialect)).toEqual(['torchrun', 'torchtune']);
    expect(reading.spec.distributed?.value).toMatchObject({ processesPerNode: 2, strategy: 'fsdp2' });
  });
});

describe('recipes', () => {
  it.each([
    ['lora_dpo_single_device', '"dpo"'],
    ['full_finetune_single_device', '"sft"'],
    ['ppo_full_finetune_single_device', 'null'],
  ])('%s trains %s', (recipe, objective) => {
    expect(one(yaml, 'objective', `tune run ${recipe} --config otter.yaml`)).toBe(`${objective} <- recipe ${recipe}`);
  });

  it.each(['generate', 'eleuther_eval', 'quantize'])('%s is none', (recipe) => {
    expect(read(`tune run ${recipe} --config otter.yaml`, withYaml(yaml)).stack).toEqual([]);
  });

  it('come with configs that are known by name', () => {
    const reading = read('tune run lora_finetune_single_device --config llama3_1/8B_qlora_single_device batch_size=9');
    expect(said(reading, 'modelNameOrPath', 'method', 'perDeviceTrainBatchSize', 'gradientAccumulationSteps')).toEqual({
      modelNameOrPath: '"meta-llama/Llama-3.1-8B" <- default torchtune llama3_1/8B_qlora_single_device 0.6.1',
      method: '"qlora" <- default torchtune llama3_1/8B_qlora_single_device 0.6.1',
      perDeviceTrainBatchSize: '9 <- argv[5]',
      gradientAccumulationSteps: '8 <- default torchtune llama3_1/8B_qlora_single_device 0.6.1',
    });
  });

  it('name a config that neither they nor the folder have', () => {
    const [problem] = problemsOf('tune run lora_finetune_single_device --config llama9/8B_lora');
    expect(problem!.help).toBe('copy the config with tune cp llama9/8B_lora my.yaml and name the copy');
  });

  it.each([
    ['tune run lora_finetune_single_device', /no config/],
    ['tune run lora_finetune_single_device --config=otter.yaml', /a word of its own/],
    [`${cli} --batch_size 4`, /not of the form key=value/],
    [`${cli} a=b=c`, /not of the form key=value/],
  ])('do not take %s', (line, message) => {
    expect(problemsOf(line, withYaml(yaml))[0]!.message).toMatch(message);
  });
});

describe('what stops or misleads', () => {
  it.each([
    ['dtype: bf16', 'dtype: fp16', 'torchtune does not train in fp16'],
    [
      'enable_activation_checkpointing: True\nenable_activation_offloading: False',
      'enable_activation_offloading: True',
      'enable_activation_offloading needs enable_activation_checkpointing',
    ],
    ['batch_size: 3', 'batch_size: some', 'batch_size is "some", expected a whole number above 0'],
  ])('%s as %s', (from, to, message) => {
    expect(problemsOf(cli, withYaml(changed(from, to)))[0]!.message).toBe(message);
  });

  it('is a slip of the pen, a recipe of the other kind, parallelism inside a layer', () => {
    const codes = (text: string, line = cli) => read(line, withYaml(text)).diagnostics.map((each) => each.code);
    expect(codes(changed('enable_activation_checkpointing', 'enable_activation_checkpoint'))).toContain('unknown-key');
    expect(codes(yaml, cli.replace('lora_', 'full_'))).toContain('conflict');
    expect(codes(changed('.lora_llama', '.llama'))).toContain('conflict');
    expect(
      codes(yaml, 'tune run --nproc_per_node 2 lora_finetune_distributed --config otter.yaml tensor_parallel_dim=2'),
    ).toContain('not-estimated');
  });

  it('is told where it is not understood', () => {
    const reading = read(`${cli} model.num_layers=9`, withYaml(`${yaml}otters: 3\n`));
    expect(reading.unread.filter((each) => each.reason !== 'no-effect-on-memory')).toEqual([
      { key: 'model.num_layers', origin: { kind: 'argv', index: 5 }, reason: 'unknown-key' },
      { key: 'otters', origin: { kind: 'file', path: 'otter.yaml', line: 36 }, reason: 'unknown-key' },
    ]);
  });
});

describe('a file alone', () => {
  const command = (text: string): string | undefined => {
    const reading = readBareFile('otter.yaml', contextOf(withYaml(text)));
    return reading.ok ? reading.value.reading.command.argv.join(' ') : reading.error[0]!.message;
  };

  it.each([
    [yaml, cli],
    [yaml.replace('.lora_llama', '.llama'), cli.replace('lora_', 'full_')],
    [`${yaml}fsdp_cpu_offload: True\n`, 'tune run --nproc_per_node gpu lora_finetune_distributed --config otter.yaml'],
    [
      yaml.replace('modules.loss.CEWithChunkedOutputLoss', 'rlhf.loss.DPOLoss'),
      'tune run lora_dpo_single_device --config otter.yaml',
    ],
  ])('is started by its recipe (%#)', (text, expected) => {
    expect(command(text)).toBe(expected);
  });

  it('that trains nothing is known, and one that looks like it is not', () => {
    expect(command('model:\n  _component_: torchtune.models.llama2.llama2_7b\ntokenizer: {}\n')).toMatch(
      /does not train/,
    );
    expect(command('net:\n  _component_: torchtune.models.llama2.llama2_7b\noptimizer: {}\n')).toMatch(
      /not a launch config/,
    );
  });
});
