import { expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';

const config = `from torch.optim import AdamW
pretrained_model_name_or_path = 'acme/otter-7b'
max_length = 1800
pack_to_max_length = True
sequence_parallel_size = 1
batch_size = 3  # a GPU
accumulative_counts = 5
accumulative_counts *= sequence_parallel_size
# batch_size = 64
optim_type = AdamW
max_norm = 0.5
data_path = str(home)
model = dict(
    type=SupervisedFinetune,
    llm=dict(type=AutoModelForCausalLM.from_pretrained, torch_dtype=torch.float16,
        quantization_config=dict(type=BitsAndBytesConfig, load_in_4bit=True,
            bnb_4bit_compute_dtype=torch.float16, bnb_4bit_quant_type="nf4")),
    lora=dict(type=LoraConfig, r=40, lora_alpha=16, lora_dropout=0.2))
optim_wrapper = dict(type=AmpOptimWrapper, dtype='bfloat16')
`;
const machine = (text = config) => ({ files: { 'o.py': text } });
const one = (text: string, name: SettingName, line = 'xtuner train o.py'): string =>
  said(read(line, machine(text)), name)[name]!;

it('reads literal assignments, and runs nothing', () => {
  const reading = read('NPROC_PER_NODE=2 xtuner train o.py --deepspeed deepspeed_zero2_offload', machine());
  expect(reading.stack).toEqual([
    { dialect: 'xtuner', kind: 'trainer', via: 'cli' },
    { dialect: 'deepspeed-config', kind: 'engine' },
  ]);
  expect(
    said(
      reading,
      ...(['modelNameOrPath', 'method', 'dtype', 'mixedPrecision', 'perDeviceTrainBatchSize', 'optim'] as const),
      ...(['gradientAccumulationSteps', 'maxLength', 'packing', 'maxGradNorm', 'distributed'] as const),
    ),
  ).toEqual({
    modelNameOrPath: '"acme/otter-7b" <- o.py:2',
    method: '"qlora" <- o.py:16',
    dtype: '"fp16" <- o.py:15',
    mixedPrecision: '"bf16" <- o.py:19',
    perDeviceTrainBatchSize: '3 <- o.py:6',
    optim: '"adamw_torch" <- o.py:10',
    gradientAccumulationSteps: '5 <- o.py:8',
    maxLength: '1800 <- o.py:3',
    packing: 'true <- o.py:4',
    maxGradNorm: '0.5 <- o.py:11',
    distributed: '{"nodes":1,"processesPerNode":2,"strategy":"zero2","offload":["optimizer"]} <- argv[5]',
  });
  expect(reading.spec.lora?.value).toMatchObject({ r: 40, targetModules: 'all-linear', adapterDtype: 'fp32' });
  expect(reading.spec.quantization?.value).toMatchObject({ computeDtype: 'fp16', upcastRestToFp32: true });
  expect(reading.unread).toContainEqual({
    key: 'data_path',
    origin: { kind: 'file', path: 'o.py', line: 12 },
    reason: 'a Python expression',
  });
  expect(reading.writable('perDeviceTrainBatchSize', 1)).toMatch(/cannot be told/);
});

it.each<[string, string, SettingName, string]>([
  ['an expression', 'batch_size = 2 * n', 'perDeviceTrainBatchSize', 'null <- o.py:1'],
  ['a name', 'rows = 4\nbatch_size = rows', 'perDeviceTrainBatchSize', '4 <- o.py:2'],
  ['nothing quantised', 'lora = dict(type=LoraConfig, r=8)', 'dtype', '"fp32" <- default xtuner 0.2'],
  [
    'checkpointing is on',
    'max_length = 9',
    'gradientCheckpointing',
    '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":false} <- default xtuner 0.2',
  ],
  ['autocast without a dtype', 'o = dict(type=AmpOptimWrapper)', 'mixedPrecision', '"fp16" <- o.py:1'],
])('%s', (_, text, name, expected) => {
  expect(one(text, name)).toBe(expected);
});

it('knows a config that comes with it by its name alone', () => {
  const reading = read('xtuner train acme_7b_qlora_fish_e3');
  expect(said(reading, 'method', 'perDeviceTrainBatchSize')).toEqual({
    method: '"qlora" <- argv[2]',
    perDeviceTrainBatchSize: 'null <- argv[2]',
  });
  expect(reading.diagnostics[0]).toMatchObject({ code: 'builtin-config', location: 'argv[2]' });
});

it('reads the flags of the newer trainer, and predicts nothing', () => {
  const line =
    'torchrun --nproc-per-node 4 xtuner/v1/train/cli/sft.py --load-from acme/otter --pack-max-length 9000 --global-batch-size 12';
  const reading = read(line);
  expect(said(reading, 'modelNameOrPath', 'maxLength', 'gradientAccumulationSteps', 'distributed')).toEqual({
    modelNameOrPath: '"acme/otter" <- argv[5]',
    maxLength: '9000 <- argv[7]',
    gradientAccumulationSteps: '3 <- argv[9]',
    distributed: '{"nodes":1,"processesPerNode":4,"strategy":"fsdp2","offload":[]} <- argv[2]',
  });
  expect(reading.notEstimated?.code).toBe('not-estimated');
});

it('asks for what is missing', () => {
  expect(problemsOf('xtuner train')[0]).toMatchObject({ code: 'no-config' });
  expect(problemsOf('xtuner train gone.py')[0]!.message).toContain('gone.py');
});
