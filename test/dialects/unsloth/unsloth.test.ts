import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { problemsOf, read, said } from '../phrase-book.ts';
import { rewritten } from '../rewrites.ts';

const cli = 'python unsloth-cli.py --model_name acme/otter-8b --load_in_4bit --r 24';
const machine = { gpus: 1 };

describe('unsloth-cli.py', () => {
  it('has defaults of its own', () => {
    const reading = read(cli, machine);
    expect(reading.stack.map((each) => each.dialect)).toEqual(['python', 'unsloth']);
    expect(
      said(
        reading,
        ...(['modelNameOrPath', 'method', 'lora', 'maxLength', 'perDeviceTrainBatchSize', 'optim'] as const),
        ...(['gradientAccumulationSteps', 'gradientCheckpointing', 'lossImpl', 'packing'] as const),
      ),
    ).toEqual({
      modelNameOrPath: '"acme/otter-8b" <- argv[3]',
      method: '"qlora" <- argv[4]',
      lora: '{"r":24,"loraAlpha":16,"loraDropout":0,"targetModules":"all-linear","adapterDtype":"fp32","modulesToSave":[]} <- argv[6]',
      maxLength: '2048 <- default unsloth-cli 2025.11',
      perDeviceTrainBatchSize: '2 <- default unsloth-cli 2025.11',
      optim: '"adamw_8bit" <- default unsloth-cli 2025.11',
      gradientAccumulationSteps: '4 <- default unsloth-cli 2025.11',
      gradientCheckpointing:
        '{"enabled":true,"useReentrant":true,"everyNLayers":1,"offload":true} <- default unsloth-cli 2025.11',
      lossImpl: '"fused" <- default unsloth-cli 2025.11',
      packing: 'false <- default unsloth-cli 2025.11',
    });
  });

  it.each<[string, SettingName, string]>([
    ['python unsloth-cli.py', 'method', '"lora"'],
    ['python unsloth-cli.py', 'modelNameOrPath', '"unsloth/llama-3-8b"'],
    ['python unsloth-cli.py --use_gradient_checkpointing True', 'gradientCheckpointing', '"offload":false'],
    ['python unsloth-cli.py --packing', 'packing', 'true'],
    ['python unsloth-cli.py --dtype float16', 'mixedPrecision', '"fp16"'],
  ])('%s: %s is %s', (line, name, part) => {
    expect(said(read(line, machine), name)[name]).toContain(part);
  });

  it.each<[string, Partial<Record<SettingName, unknown>>, string[]]>([
    [
      'batch and accumulation',
      { perDeviceTrainBatchSize: 1, gradientAccumulationSteps: 8 },
      ['+ --per_device_train_batch_size', '+ 1', '+ --gradient_accumulation_steps', '+ 8'],
    ],
    ['the length', { maxLength: 512 }, ['+ --max_seq_length', '+ 512']],
    ['a base in 16 bits: the switch goes', { method: 'lora' }, ['- --load_in_4bit']],
    ['an optimizer', { optim: 'paged_adamw_8bit' }, ['+ --optim', '+ paged_adamw_8bit']],
    ['packing: a switch alone', { packing: true }, ['+ --packing']],
  ])('is told %s', (_, settings, expected) => {
    expect(rewritten(cli, machine, settings)).toEqual(expected);
  });

  it.each<[SettingName, unknown, RegExp]>([
    ['method', 'full', /adapters only/],
    ['maxGradNorm', 0.5, /decides this itself/],
    ['resumeFromCheckpoint', 'x', /without a checkpoint/],
  ])('cannot be told %s', (setting, to, reason) => {
    expect(rewritten(cli, machine, { [setting]: to })).toEqual([expect.stringMatching(reason)]);
  });

  it('stops at a flag without its value', () => {
    expect(problemsOf('python unsloth-cli.py --r')[0]!.message).toBe('--r needs a value');
  });
});

describe('a script made from a notebook', () => {
  const script = `from unsloth import FastLanguageModel
from trl import SFTTrainer, SFTConfig
max_seq_length = 1536
rows = 2 * 3
model, tokenizer = FastLanguageModel.from_pretrained(
    model_name = "acme/otter-8b",  # base
    max_seq_length = max_seq_length,
    load_in_4bit = True,
)
model = FastLanguageModel.get_peft_model(model, r = 12, lora_alpha = 24, target_modules = ["q_proj", "v_proj"])
trainer = SFTTrainer(model = model, args = SFTConfig(per_device_train_batch_size = rows, optim = "adamw_8bit"))
`;
  const files = { 'otter.py': script, 'other.py': script.replace('unsloth', 'shells') };

  it('is read by its literal arguments, what is computed is said by name, and nothing is rewritten', () => {
    const reading = read('python otter.py', { gpus: 1, files });
    expect(reading.stack.map((each) => each.dialect)).toEqual(['python', 'unsloth']);
    expect(said(reading, 'modelNameOrPath', 'maxLength', 'method', 'lora', 'perDeviceTrainBatchSize')).toEqual({
      modelNameOrPath: '"acme/otter-8b" <- otter.py:6',
      maxLength: '1536 <- otter.py:7',
      method: '"qlora" <- otter.py:8',
      lora: '{"r":12,"loraAlpha":24,"loraDropout":0,"targetModules":["q_proj","v_proj"],"adapterDtype":"fp32","modulesToSave":[]} <- otter.py:10',
      perDeviceTrainBatchSize: 'null <- otter.py:11',
    });
    expect(reading.diagnostics.map((each) => each.message)).toEqual([
      'otter.py is a program: only literal arguments of its calls are read, and none is rewritten',
      'per_device_train_batch_size is computed by the script, so its value is not known',
    ]);
    expect(reading.writable('maxLength', 512)).toMatch(/not rewritten/);
  });

  it('is not one that looks like it', () => {
    expect(read('python other.py', { gpus: 1, files }).stack.map((each) => each.dialect)).not.toContain('unsloth');
  });
});
