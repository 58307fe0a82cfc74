import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, said } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const run = (flags: string): string => `autotrain llm --train --model acme/otter ${flags}`;
const one = (flags: string, name: SettingName): string => said(read(run(flags), { gpus: 2 }), name)[name]!;

it.each<[string, string, SettingName, string]>([
  ['rows', '--batch-size 3', 'perDeviceTrainBatchSize', '3 <- argv[6]'],
  ['steps by default', '', 'gradientAccumulationSteps', '4 <- default autotrain 0.8'],
  ['tokens by default', '', 'maxLength', '1024 <- default autotrain 0.8'],
  ['adapters alone are in 4 bits', '--peft', 'method', '"qlora" <- argv[5]'],
  ['adapters on a whole base', '--peft --quantization none', 'method', '"lora" <- argv[5]'],
  ['a whole base is fp32', '--peft --quantization none', 'dtype', '"fp32" <- default autotrain 0.8'],
  ['text is packed', '', 'packing', 'true <- default autotrain 0.8'],
  ['pairs are not', '--trainer dpo', 'packing', 'false <- argv[6]'],
  [
    'every GPU',
    '',
    'distributed',
    '{"nodes":1,"processesPerNode":2,"strategy":"ddp","offload":[]} <- the visible GPUs',
  ],
  [
    'DeepSpeed',
    '--distributed-backend deepspeed',
    'distributed',
    '{"nodes":1,"processesPerNode":2,"strategy":"zero3","offload":[]} <- argv[6]',
  ],
])('%s', (_, flags, name, expected) => {
  expect(one(flags, name)).toBe(expected);
});

it('leaves what does not train, and names what it does not read', () => {
  expect(read('autotrain llm --inference --model acme/otter').stack).toEqual([]);
  expect(read('autotrain image-classification --train --batch-size 3').stack).toEqual([]);
  const { unread, diagnostics } = read(run('--lr 1e-4 --otter 3 --unsloth'), { gpus: 1 });
  expect(unread.map((each) => `${each.key}: ${each.reason}`)).toEqual([
    'train: no-effect-on-memory',
    'lr: no-effect-on-memory',
    'otter: unknown-key',
  ]);
  expect(diagnostics.map((each) => each.code)).toEqual(['not-estimated']);
});

describe('a rewrite', () => {
  it.each<[string, string, Partial<Record<SettingName, unknown>>, string[]]>([
    [
      'splits a step',
      '--batch-size 8',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 16 },
      ['- 8', '+ 2', '+ --gradient_accumulation', '+ 16'],
    ],
    ['quantises', '--peft --quantization none', { method: 'qlora' }, ['- none', '+ int4']],
    [
      'stops recomputing',
      '',
      { gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false } },
      ['+ --disable_gradient_checkpointing'],
    ],
    [
      'has no bf16 in 4 bits',
      '--peft',
      { quantization: { bits: 4, quantType: 'nf4', doubleQuant: false, computeDtype: 'bf16', upcastRestToFp32: true } },
      ['autotrain quantises to NF4 once, computes in fp16 and casts the rest up'],
    ],
  ])('%s', (_, flags, settings, expected) => {
    expect(rewritten(run(flags), { gpus: 1 }, settings)).toEqual(expected);
  });
});
