import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, said } from '../phrase-book.ts';

const run = (flags: string): string =>
  `torchrun --nproc-per-node 8 --nnodes 2 pretrain_gpt.py --micro-batch-size 2 --tensor-model-parallel-size 4 ${flags}`;
const one = (flags: string, name: SettingName): string => said(read(run(flags)), name)[name]!;

it('reads the flags, and says that nothing is predicted', () => {
  const reading = read(
    run('--global-batch-size 64 --seq-length 3000 --bf16 --lr 1e-4 --pipeline-model-parallel-size 2'),
  );
  expect(reading.stack.map((entry) => entry.dialect)).toEqual(['torchrun', 'megatron']);
  expect(
    said(
      reading,
      'perDeviceTrainBatchSize',
      'gradientAccumulationSteps',
      'maxLength',
      'dtype',
      'distributed',
      'method',
    ),
  ).toEqual({
    perDeviceTrainBatchSize: '2 <- argv[7]',
    // 16 GPUs in groups of 4 × 2 are 2 replicas: 64 ÷ (2 × 2).
    gradientAccumulationSteps: '16 <- argv[11]',
    maxLength: '3000 <- argv[13]',
    dtype: '"bf16" <- argv[14]',
    distributed: '{"nodes":2,"processesPerNode":8,"strategy":"ddp","offload":[]} <- argv[2]',
    method: '"full" <- default megatron-core 0.20',
  });
  expect(reading.notEstimated?.message).toBe(
    "Megatron's flags are read (tensor parallel 4, pipeline parallel 2), but what its step holds is not modelled",
  );
  expect(reading.writable('perDeviceTrainBatchSize', 1)).toBe('Megatron-LM cannot be told per_device_train_batch_size');
  expect(reading.unread.map((each) => [each.key, each.reason])).toEqual([['lr', 'no-effect-on-memory']]);
});

it.each<[string, string, SettingName, string]>([
  ['without a global batch', '', 'gradientAccumulationSteps', '1 <- default megatron-core 0.20'],
  [
    'a batch that grows',
    '--global-batch-size 64 --rampup-batch-size 8 8 100',
    'gradientAccumulationSteps',
    'null <- argv[13]',
  ],
  [
    'full recomputation',
    '--recompute-granularity full --recompute-method uniform --recompute-num-layers 3',
    'gradientCheckpointing',
    '{"enabled":true,"useReentrant":true,"everyNLayers":3,"offload":false} <- argv[11]',
  ],
  ['parts of a layer', '--recompute-activations', 'gradientCheckpointing', 'null <- argv[10]'],
  ['some layers', '--recompute-granularity full --recompute-method block', 'gradientCheckpointing', 'null <- argv[11]'],
  [
    'shared states',
    '--use-distributed-optimizer',
    'distributed',
    '{"nodes":2,"processesPerNode":8,"strategy":"zero1","offload":[]} <- argv[2]',
  ],
  ['another optimizer', '--optimizer muon', 'optim', 'null <- argv[11]'],
  ['a fused loss', '--cross-entropy-loss-fusion', 'lossImpl', '"fused_logits" <- argv[10]'],
])('%s', (_, flags, name, expected) => {
  expect(one(flags, name)).toBe(expected);
});

describe('the model', () => {
  const sizes = '--num-layers 6 --hidden-size 512 --num-attention-heads 8 --seq-length 256 --vocab-size 1000';

  it('is spelled out by the flags, its vocabulary padded for the tensor parallel group', () => {
    const flags = `${sizes} --swiglu --normalization RMSNorm --position-embedding-type rope --group-query-attention --num-query-groups 2 --untie-embeddings-and-output-weights --ffn-hidden-size 1300`;
    expect(read(run(flags)).spec.modelConfig?.value).toMatchObject({
      model_type: 'llama',
      intermediate_size: 1300,
      num_key_value_heads: 2,
      vocab_size: 1024,
      tie_word_embeddings: false,
    });
    expect(read(run(sizes)).spec.modelConfig?.value).toMatchObject({ model_type: 'gpt2', n_inner: 2048, n_layer: 6 });
  });

  it('is left open where it has no counterpart', () => {
    expect(read(run(`${sizes} --num-experts 4`)).spec.modelConfig).toBeUndefined();
    expect(read(run(`${sizes} --swiglu`)).spec.modelConfig).toBeUndefined();
  });
});

it('goes on from the folder it saves to', () => {
  expect(read(run('--save den --load den')).resume.kind).toBe('supported');
  expect(read(run('--save den --load pond')).resume.kind).toBe('unsupported');
});

it('leaves alone what only shares its batch', () => {
  const line = 'torchrun --nproc-per-node 8 otter.py --micro-batch-size 2 --fish 3';
  expect(read(line).stack.map((entry) => entry.dialect)).toEqual(['torchrun']);
});
