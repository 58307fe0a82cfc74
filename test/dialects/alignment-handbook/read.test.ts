import { describe, expect, it } from 'vitest';
import { read, rewrite, said } from '../phrase-book.ts';

const recipe = `model_name_or_path: acme/otter-7b
torch_dtype: bfloat16
load_in_4bit: true
use_peft: true
lora_r: 20
lora_target_modules:
- q_proj
- o_proj
chat_template: "{% for m in messages %}{{ m }}{% endfor %}"
dataset_mixture:
  datasets:
    - id: acme/talk
bf16: true
max_seq_length: 1800
per_device_train_batch_size: 3
overwrite_output_dir: true
use_liger: true
flavour: sweet
`;
const files = { 'recipes/otter/sft/config_qlora.yaml': recipe };
const line = 'accelerate launch --num_processes=2 scripts/sft.py --config recipes/otter/sft/config_qlora.yaml --seed 4';

describe('a recipe', () => {
  const reading = read(line, { files, gpus: 2 });

  it('is read with the names and defaults of TRL 0.19', () => {
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['accelerate', 'alignment-handbook']);
    expect(
      said(reading, 'dtype', 'maxLength', 'method', 'quantization', 'gradientCheckpointing', 'lossImpl', 'objective'),
    ).toEqual({
      dtype: '"bf16" <- recipes/otter/sft/config_qlora.yaml:2',
      maxLength: '1800 <- recipes/otter/sft/config_qlora.yaml:14',
      method: '"qlora" <- recipes/otter/sft/config_qlora.yaml:3',
      quantization:
        '{"bits":4,"quantType":"nf4","doubleQuant":false,"computeDtype":"bf16","upcastRestToFp32":true} <- recipes/otter/sft/config_qlora.yaml:3',
      gradientCheckpointing:
        '{"everyNLayers":1,"offload":false,"enabled":false,"useReentrant":false} <- default trl 0.19',
      lossImpl: '"fused" <- recipes/otter/sft/config_qlora.yaml:17',
      objective: '"sft" <- trl sft',
    });
    expect(reading.spec.lora?.value?.adapterDtype).toBe('fp32');
    expect(reading.diagnostics).toEqual([]);
    expect(reading.unread.filter((each) => each.reason === 'unknown-key').map((each) => each.key)).toEqual(['flavour']);
    expect(reading.resume.kind).toBe('supported');
  });

  it('is written in its own words', () => {
    const fitted = rewrite(reading, { maxLength: 900, perDeviceTrainBatchSize: 1 }, { resumeFrom: '/r/checkpoint-3' });
    expect(fitted.files[0]!.text).toBe(
      `${recipe.replace('1800', '900').replace('size: 3', 'size: 1')}resume_from_checkpoint: /r/checkpoint-3\n`,
    );
  });
});

it.each([
  [
    'a script that imports alignment',
    'python go.py --config c.yaml',
    { 'go.py': 'from alignment import x\nfrom trl import SFTTrainer\n', 'c.yaml': '' },
    'alignment-handbook',
  ],
  ['a module of open-r1', 'accelerate launch -m open_r1.sft --config c.yaml', { 'c.yaml': '' }, 'alignment-handbook'],
  [
    'a script of TRL with a config below recipes/',
    'python trl/scripts/sft.py --config recipes/c.yaml',
    { 'recipes/c.yaml': '' },
    'trl',
  ],
  [
    'a script that imports trl alone',
    'python sft.py --config recipes/c.yaml',
    { 'sft.py': 'from trl import SFTTrainer\n', 'recipes/c.yaml': '' },
    'trl',
  ],
  ['any other name with such a config', 'python go.py --config recipes/c.yaml', { 'recipes/c.yaml': '' }, 'trl'],
])('%s', (_, command, more, dialect) => {
  const reading = read(command, { files: more as unknown as Record<string, string>, gpus: 1 });
  expect(reading.stack.find((entry) => entry.kind === 'trainer')?.dialect).toBe(dialect);
});
