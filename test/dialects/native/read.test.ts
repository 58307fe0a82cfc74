import { describe, expect, it } from 'vitest';
import type { Diagnostic } from '../../../src/core/index.ts';
import { type NativeConfig, readNativeConfig } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { said } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const full = `# otter
command: >-
  torchrun --nproc-per-node 3 go.py --bs {per_device_train_batch_size}
  --accum={gradient_accumulation_steps} --ckpt {gradient_checkpointing}
model: acme/otter-3b
method: qlora
dtype: bfloat16
mixed_precision: no
per_device_train_batch_size: 6
gradient_accumulation_steps: 5
max_length: 1536
gradient_checkpointing: {use_reentrant: true, every_n_layers: 2}
optim: paged_adamw_8bit
quantization: {quant_type: fp4}
lora:
  r: 24
  target_modules: [q_proj, v_proj]
versions: {torch: 2.11}
policy: {mode: warn, allow: [free, exact, method], max_retries: 7, headroom: 0.125}
resume: --from {checkpoint}
`;

function config(text: string, machine: Machine = {}): NativeConfig {
  const read = readNativeConfig('snug.yaml', contextOf({ ...machine, files: { 'snug.yaml': text, ...machine.files } }));
  if (!read.ok) throw new Error(JSON.stringify(read.error, null, 1));
  return read.value;
}

function problems(text: string, machine: Machine = {}): readonly Diagnostic[] {
  const read = readNativeConfig('snug.yaml', contextOf({ ...machine, files: { 'snug.yaml': text } }));
  if (read.ok) throw new Error('the config was read');
  return read.error;
}

describe('snug.yaml', () => {
  it('gives every value its line', () => {
    const { reading } = config(full);
    expect(reading.stack).toEqual([
      { dialect: 'torchrun', kind: 'launcher' },
      { dialect: 'native', kind: 'trainer' },
    ]);
    expect(reading.command.argv).toEqual([
      'torchrun',
      '--nproc-per-node',
      '3',
      'go.py',
      '--bs',
      '6',
      '--accum=5',
      '--ckpt',
      'true',
    ]);
    expect(reading.files).toEqual(['snug.yaml']);
    expect(said(reading, ...(Object.keys(reading.spec) as SettingName[]))).toMatchObject({
      modelNameOrPath: '"acme/otter-3b" <- snug.yaml:5',
      method: '"qlora" <- snug.yaml:6',
      dtype: '"bf16" <- snug.yaml:7',
      mixedPrecision: '"no" <- snug.yaml:8',
      perDeviceTrainBatchSize: '6 <- snug.yaml:9',
      gradientAccumulationSteps: '5 <- snug.yaml:10',
      maxLength: '1536 <- snug.yaml:11',
      gradientCheckpointing: '{"enabled":true,"useReentrant":true,"everyNLayers":2,"offload":false} <- snug.yaml:12',
      optim: '"paged_adamw_8bit" <- snug.yaml:13',
      quantization:
        '{"bits":4,"quantType":"fp4","doubleQuant":true,"computeDtype":"bf16","upcastRestToFp32":true} <- snug.yaml:14',
      lora: '{"r":24,"loraAlpha":32,"loraDropout":0,"targetModules":["q_proj","v_proj"],"adapterDtype":"fp32","modulesToSave":[]} <- snug.yaml:15',
      versions: '{"torch":"2.11","transformers":"5.17","peft":"0.21","trl":"1.13"} <- snug.yaml:18',
      distributed: '{"nodes":1,"processesPerNode":3,"strategy":"ddp","offload":[]} <- argv[2]',
    });
  });

  it('hands the policy on as it stands', () => {
    expect(config(full).policy).toEqual({
      mode: 'warn',
      allow: ['free', 'exact', 'method'],
      maxRetries: 7,
      headroom: 0.125,
      places: { allow: expect.stringMatching(/^snug\.yaml:\d+$/) },
    });
    expect(config('model: a\n').policy).toEqual({});
  });

  it('holds the defaults of the format for what is left out', () => {
    const { reading } = config('model: acme/otter-3b\nper_device_train_batch_size: 3\nmax_length: 99\n');
    const values = Object.fromEntries(Object.entries(reading.spec).map(([name, setting]) => [name, setting?.value]));
    expect(values).toEqual({
      modelNameOrPath: 'acme/otter-3b',
      method: 'full',
      objective: 'sft',
      dtype: 'bf16',
      mixedPrecision: 'no',
      perDeviceTrainBatchSize: 3,
      perDeviceEvalBatchSize: 8,
      eval: false,
      gradientAccumulationSteps: 1,
      maxLength: 99,
      packing: false,
      paddingFree: false,
      attentionMask: false,
      attnImplementation: 'sdpa',
      gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false },
      optim: 'adamw_torch_fused',
      maxGradNorm: 1,
      quantization: null,
      distributed: { nodes: 1, processesPerNode: 1, strategy: 'ddp', offload: [] },
      dataloaderNumWorkers: 0,
      dataloaderPinMemory: true,
      lossImpl: 'full',
    });
    expect(said(reading, 'optim').optim).toBe('"adamw_torch_fused" <- default snug 0.1');
  });

  it.each([
    ['none', []],
    ['optimizer', ['optimizer']],
    ['[parameters, optimizer]', ['parameters', 'optimizer']],
  ])('takes offload: %s', (text, offload) => {
    const { spec } = config(`distributed: {processes_per_node: 4, strategy: zero3, offload: ${text}}\n`).reading;
    expect(spec.distributed?.value).toEqual({ nodes: 1, processesPerNode: 4, strategy: 'zero3', offload });
  });

  it('takes the word for more than the launcher', () => {
    const text = 'command: torchrun --nproc-per-node 3 go.py\ndistributed: {nodes: 2, processes_per_node: 8}\n';
    expect(config(text).reading.spec.distributed?.value).toMatchObject({ nodes: 2, processesPerNode: 8 });
  });

  it('sizes LoRA and IA³ by itself where only the method is named', () => {
    expect(config('method: lora\n').reading.spec.lora?.value).toEqual({
      r: 16,
      loraAlpha: 32,
      loraDropout: 0,
      targetModules: 'all-linear',
      adapterDtype: 'fp32',
      modulesToSave: [],
    });
    expect(config('method: ia3\n').reading.spec.ia3?.value?.targetModules).toEqual(['k_proj', 'v_proj', 'down_proj']);
    expect(config('method: full\n').reading.spec.lora).toBeUndefined();
  });
});

describe('what is wrong in a snug.yaml', () => {
  it.each<[string, string, string, string, string]>([
    ['max_lenght: 5', 'unknown-key', 'unknown key max_lenght', 'snug.yaml:1', 'did you mean max_length'],
    ['a: 1', 'unknown-key', 'unknown key a', 'snug.yaml:1', 'take the key out, or see what snug dialects lists'],
    [
      'lora:\n  rank: 5',
      'unknown-key',
      'unknown key lora.rank',
      'snug.yaml:2',
      expect.stringMatching(/known are r, /) as never,
    ],
    [
      'model: x\nmax_length: -5',
      'bad-value',
      'max_length is -5, expected a whole number from 1',
      'snug.yaml:2',
      'give max_length a whole number from 1',
    ],
    [
      'per_device_train_batch_size: 2.5',
      'bad-value',
      'per_device_train_batch_size is 2.5, expected a whole number from 1',
      'snug.yaml:1',
      'give per_device_train_batch_size a whole number from 1',
    ],
    [
      'max_length: 1e3',
      'bad-value',
      'max_length is "1e3", expected a whole number from 1',
      'snug.yaml:1',
      'give max_length a whole number from 1',
    ],
    [
      'objective: stf',
      'bad-value',
      'objective is "stf", expected one of sft, clm, dpo, kto, orpo, reward, grpo, rloo, classification, seq2seq',
      'snug.yaml:1',
      'did you mean sft',
    ],
    [
      'optim: adam_torch',
      'bad-value',
      'optim is "adam_torch", expected a known name',
      'snug.yaml:1',
      'did you mean adamw_torch',
    ],
    [
      'policy:\n  mode: rewrit',
      'bad-value',
      'policy.mode is "rewrit", expected one of rewrite, refuse, warn',
      'snug.yaml:2',
      'did you mean rewrite',
    ],
    ['packing: 3', 'bad-value', 'packing is 3, expected true or false', 'snug.yaml:1', 'give packing true or false'],
    ['model: x\nmodel: y', 'duplicate-key', 'model stands there twice', 'snug.yaml:2', 'keep one of them'],
    [
      'quantization: {bits: 5}',
      'bad-value',
      'quantization.bits is 5, expected 4 or 8',
      'snug.yaml:1',
      'give quantization.bits 4 or 8',
    ],
    [
      'command: go --bs {batch}',
      'unknown-placeholder',
      '{batch} in the command is no setting',
      'snug.yaml:1',
      expect.any(String) as never,
    ],
    [
      'command: go --n {max_length}',
      'missing-value',
      'the command has {max_length}, and the config gives it no value',
      'snug.yaml:1',
      'add max_length:',
    ],
    [
      'command: go --from {checkpoint}',
      'unknown-placeholder',
      '{checkpoint} in the command is no setting',
      'snug.yaml:1',
      'put it into resume:',
    ],
    [
      'command: go\nresume: --again',
      'no-checkpoint',
      'resume: does not say where the checkpoint goes',
      'snug.yaml:2',
      'write {checkpoint} in it',
    ],
  ])('%s', (text, code, message, location, help) => {
    expect(problems(`${text}\n`)).toEqual([{ code, severity: 'error', message, location, help }]);
  });

  it('is told all at once', () => {
    expect(problems('metod: full\nmax_length: 0\ndtype: fp8\n').map((each) => each.location)).toEqual(
      expect.arrayContaining(['snug.yaml:1', 'snug.yaml:2', 'snug.yaml:3']),
    );
  });

  it.each(['go | tee log', 'go && stop', 'go > log'])('is a command that needs a shell: %s', (command) => {
    expect(problems(`command: "${command}"\n`)).toMatchObject([
      { code: 'shell-syntax', location: 'snug.yaml:1', help: expect.any(String) },
    ]);
  });

  it('is a file that the command names and nobody can read', () => {
    expect(problems('command: trl sft --config none.yaml\n').map((each) => each.location)).toEqual(['none.yaml']);
  });
});
