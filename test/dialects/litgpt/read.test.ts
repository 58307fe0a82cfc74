import { describe, expect, it } from 'vitest';
import { readBareFile } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const yaml = `# otters
checkpoint_dir: checkpoints/meta-llama/Llama-3.2-3B
out_dir: dens/otter
precision: bf16-true
devices: 1
lora_r: 24
lora_alpha: 48
lora_key: true
data:
  class_path: litgpt.data.Alpaca2k
  init_args: {num_workers: 3}
train:
  global_batch_size: 12
  micro_batch_size: 3
  max_seq_length: 700
optimizer:
  class_path: torch.optim.AdamW
  init_args:
    lr: 2e-4
`;
const cli = 'litgpt finetune_lora --config otter.yaml';
const withYaml = (text: string, more: Machine = {}): Machine => ({ gpus: 2, files: { 'otter.yaml': text }, ...more });
const one = (line: string, name: SettingName, text = yaml): string => said(read(line, withYaml(text)), name)[name]!;

it('a config is read with the defaults of its command', () => {
  const reading = read(cli, withYaml(yaml));
  expect(reading.stack).toEqual([{ dialect: 'litgpt', kind: 'trainer', via: 'cli' }]);
  expect(
    said(
      reading,
      ...(['modelNameOrPath', 'objective', 'method', 'lora', 'dtype', 'mixedPrecision', 'maxLength'] as const),
      ...(['perDeviceTrainBatchSize', 'perDeviceEvalBatchSize', 'gradientAccumulationSteps', 'eval'] as const),
      ...([
        'gradientCheckpointing',
        'lossImpl',
        'optim',
        'maxGradNorm',
        'dataloaderNumWorkers',
        'distributed',
      ] as const),
    ),
  ).toEqual({
    modelNameOrPath: '"checkpoints/meta-llama/Llama-3.2-3B" <- otter.yaml:2',
    objective: '"sft" <- litgpt lora',
    method: '"lora" <- litgpt finetune_lora',
    lora: '{"r":24,"loraAlpha":48,"loraDropout":0.05,"targetModules":["q_proj","k_proj","v_proj"],"adapterDtype":"bf16","modulesToSave":[]} <- otter.yaml:6',
    dtype: '"bf16" <- otter.yaml:4',
    mixedPrecision: '"no" <- otter.yaml:4',
    maxLength: '700 <- otter.yaml:15',
    perDeviceTrainBatchSize: '3 <- otter.yaml:14',
    perDeviceEvalBatchSize: '3 <- train.micro_batch_size',
    gradientAccumulationSteps: '4 <- otter.yaml:13',
    eval: 'true <- default litgpt 0.5.13',
    gradientCheckpointing:
      '{"enabled":false,"useReentrant":false,"everyNLayers":1,"offload":false} <- default litgpt 0.5.13',
    lossImpl: '"chunked_logits" <- default litgpt 0.5.13',
    optim: '"adamw_torch" <- otter.yaml:17',
    maxGradNorm: '0 <- default litgpt 0.5.13',
    dataloaderNumWorkers: '3 <- otter.yaml:11',
    distributed: '{"nodes":1,"processesPerNode":1,"strategy":"none","offload":[]} <- otter.yaml:5',
  });
  expect(reading.diagnostics).toEqual([]);
  expect(reading.resume.kind).toBe('unsupported');
});

describe('options', () => {
  it('win over a config that stands before them, and lose to one behind them', () => {
    expect(one(`${cli} --train.micro_batch_size 1`, 'gradientAccumulationSteps')).toBe('12 <- otter.yaml:13');
    expect(one('litgpt finetune_lora --lora_r=4 --config otter.yaml', 'lora')).toMatch(/"r":24/);
    expect(one('litgpt finetune_lora --lora_mlp true --config otter.yaml', 'lora')).toMatch(/"up_proj"/);
  });

  it.each<[string, SettingName, string]>([
    ['litgpt finetune_lora org/m', 'dtype', '"fp32" <- default litgpt 0.5.13'],
    ['litgpt finetune_lora org/m', 'mixedPrecision', '"bf16" <- default litgpt 0.5.13'],
    ['litgpt finetune_lora org/m --precision 16-mixed', 'mixedPrecision', '"fp16" <- argv[4]'],
    ['litgpt finetune_lora org/m', 'maxLength', 'null <- train.max_seq_length, which is not set'],
    ['litgpt finetune org/m', 'gradientAccumulationSteps', '16 <- default litgpt 0.5.13'],
    ['litgpt finetune full --checkpoint_dir org/m', 'method', '"full" <- litgpt full'],
    [
      'litgpt finetune_full org/m --devices auto',
      'distributed',
      '{"nodes":1,"processesPerNode":2,"strategy":"fsdp1","offload":[]} <- argv[4]',
    ],
    [
      'litgpt finetune_lora org/m --devices 2',
      'distributed',
      '{"nodes":1,"processesPerNode":2,"strategy":"fsdp2","offload":[]} <- argv[4]',
    ],
    [
      'litgpt finetune_lora org/m --devices 2',
      'gradientCheckpointing',
      '{"enabled":true,"useReentrant":false,"everyNLayers":1,"offload":false} <- argv[4]',
    ],
    ['litgpt finetune_adapter org/m', 'method', 'null <- litgpt adapter'],
    ['litgpt pretrain pythia-160m', 'modelNameOrPath', '"EleutherAI/pythia-160m" <- argv[2]'],
    ['litgpt pretrain pythia-160m', 'optim', '"adamw_torch_fused" <- default litgpt 0.5.13'],
    ['litgpt pretrain pythia-160m', 'maxGradNorm', '1 <- default litgpt 0.5.13'],
    [
      'litgpt finetune_lora EleutherAI/pythia-1b',
      'lora',
      '{"r":8,"loraAlpha":16,"loraDropout":0.05,"targetModules":["query_key_value"],"adapterDtype":"fp32","modulesToSave":[]} <- default litgpt 0.5.13',
    ],
    ['litgpt finetune_lora org/m --optimizer bitsandbytes.optim.AdamW8bit', 'optim', '"adamw_bnb_8bit" <- argv[4]'],
    ['litgpt finetune_lora org/m --precision bf16-true --quantize bnb.nf4', 'optim', '"paged_adamw_32bit" <- argv[6]'],
    [
      'litgpt finetune_lora org/m --precision bf16-true --quantize bnb.nf4-dq',
      'quantization',
      '{"bits":4,"quantType":"nf4","doubleQuant":true,"computeDtype":"bf16","upcastRestToFp32":false} <- argv[6]',
    ],
    ['litgpt finetune_lora org/m --precision bf16-true --quantize bnb.int8-training', 'method', '"lora" <- argv[6]'],
  ])('%s: %s is %s', (line, name, expected) => {
    expect(one(line, name)).toBe(expected);
  });

  it.each([
    ['litgpt finetune_lora org/m --quantize bnb.nf4', /not mixed/],
    ['litgpt finetune_lora org/m --precision bf16-true --quantize bnb.nf4 --devices 2', /only on one device/],
    ['litgpt finetune_lora org/m --precision --lora_r 4', /--precision needs a value/],
    ['litgpt finetune_lora org/m --precision bf32', /expected/],
  ])('%s stops', (line, message) => {
    expect(problemsOf(line)[0]!.message).toMatch(message);
  });

  it('a global batch that does not fit is said, and so is a key that litgpt has not', () => {
    const codes = (line: string) => read(line, { gpus: 1 }).diagnostics.map((each) => each.code);
    expect(codes('litgpt finetune_lora org/m --train.global_batch_size 7 --train.micro_batch_size 3')).toEqual([
      'odd-batch',
    ]);
    expect(codes('litgpt finetune_lora org/m --train.micro_batch 3')).toEqual(['unknown-key']);
    expect(codes('litgpt finetune_lora org/m --train.lr_warmup_steps 3')).toEqual([]);
  });
});

describe('a model', () => {
  it('is the one that a converted folder was made from', () => {
    const files = { 'checkpoints/dens/m/model_config.yaml': 'name: m\nhf_config:\n  org: google\n  name: gemma-2b\n' };
    expect(said(read('litgpt finetune_lora dens/m', { files, gpus: 1 }), 'modelNameOrPath').modelNameOrPath).toBe(
      '"google/gemma-2b" <- checkpoints/dens/m/model_config.yaml:4',
    );
    const whole = { ...files, 'checkpoints/dens/m/config.json': '{}' };
    expect(read('litgpt finetune_lora dens/m', { files: whole, gpus: 1 }).spec.modelNameOrPath?.value).toBe(
      'checkpoints/dens/m',
    );
  });
});

describe('a script of an older release', () => {
  const script = 'from lit_gpt.lora import GPT\nbatch_size = 64\nmicro_batch_size = 4  # small\nlora_r = 2 * 4\n';
  const machine = { gpus: 1, files: { 'finetune/lora.py': script } };
  const line = 'python finetune/lora.py --checkpoint_dir checkpoints/org/m --precision bf16-true';

  it('has its sizes in its text', () => {
    const reading = read(line, machine);
    expect(reading.stack.map((each) => each.dialect)).toEqual(['python', 'litgpt']);
    expect(said(reading, 'perDeviceTrainBatchSize', 'gradientAccumulationSteps')).toEqual({
      perDeviceTrainBatchSize: '4 <- finetune/lora.py:3',
      gradientAccumulationSteps: '16 <- finetune/lora.py:2',
    });
    expect(reading.writable('perDeviceTrainBatchSize', 1)).toMatch(/text of the script/);
  });

  it('is no script of another library with the same name', () => {
    const other = { gpus: 1, files: { 'finetune/lora.py': 'import torch\n' } };
    expect(read(line, other).stack.map((each) => each.dialect)).toEqual(['python']);
  });
});

describe('a file alone', () => {
  const command = (text: string): string => {
    const reading = readBareFile('otter.yaml', contextOf(withYaml(text)));
    return reading.ok ? reading.value.reading.command.argv.join(' ') : reading.error[0]!.message;
  };

  it.each([
    [yaml, cli],
    [yaml.replace(/lora_.*\n/g, ''), 'litgpt finetune_full --config otter.yaml'],
    [
      yaml.replace(/lora_.*\n/g, '').replace('dens/otter', 'out/adapter-v2/x'),
      'litgpt finetune_adapter_v2 --config otter.yaml',
    ],
    [yaml.replace('checkpoint_dir: ', 'model_name: '), 'litgpt pretrain --config otter.yaml'],
  ])('is started by its command (%#)', (text, expected) => {
    expect(command(text)).toBe(expected);
  });

  it('needs the sizes of litgpt', () => {
    expect(command('checkpoint_dir: a/b\ntrain: {steps: 3}\n')).toMatch(/not a launch config/);
  });
});
