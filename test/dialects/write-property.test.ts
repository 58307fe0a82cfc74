import { expect, it } from 'vitest';
import type { LaunchReading } from '../../src/dialects/index.ts';
import type { SettingName } from '../../src/spec/index.ts';
import { read, readBack, rewrite } from './phrase-book.ts';

const yaml = `# one
model_name_or_path: acme/otter-3b # base
per_device_train_batch_size: 8
"gradient_accumulation_steps": 4
use_peft: yes
lora_target_modules:
- q_proj   # attention only
- v_proj
learning_rate: 2e-4
gradient_checkpointing_kwargs:
  use_reentrant: true
`;
const script = 'from transformers import HfArgumentParser, TrainingArguments\n';
const torchtune = `# three
model:
  _component_: torchtune.models.mistral.lora_mistral_7b   # adapters
  lora_attn_modules: [q_proj, v_proj]
  lora_rank: 24
tokenizer: {max_seq_len: 1536}
batch_size: 8
gradient_accumulation_steps: 4
dataset:
  packed: False
optimizer:
  _component_: torch.optim.AdamW
  lr: 2e-4
  fused: True
loss: {_component_: torch.nn.CrossEntropyLoss}
dtype: bf16
`;
const litgpt = `# four
checkpoint_dir: checkpoints/dens/otter-3b
precision: bf16-true
lora_r: 24
train: {global_batch_size: 16, micro_batch_size: 8, max_seq_length: 300}   # rows
`;
const files = {
  'l.yaml': litgpt,
  't.yaml': torchtune,
  'c.yaml': yaml,
  'tune.py': script,
  'a.json': '{"output_dir": "o",\n "bf16": true,\n "per_device_train_batch_size": 8}',
};

const LAUNCHES = [
  'python tune.py --do_train --output_dir o',
  'python tune.py --per_device_train_batch_size=8 --bf16 True --gradient-checkpointing --optim=sgd --use_liger_kernel no',
  'python tune.py a.json',
  'torchrun --nproc-per-node 2 tune.py --fp16 --gradient_accumulation_steps 4 --no_dataloader_pin_memory --label_names a b',
  'trl sft --config c.yaml',
  'trl sft --config c.yaml --per_device_train_batch_size 6 --lora_target_modules k_proj --bf16 false',
  'trl sft --seed 1 --loss_type nll --dtype float16 --packing --use_peft --load_in_8bit true',
  'trl dpo --lora_r 4 --activation_offloading true --max_length 800',
  'trl grpo --max_completion_length=200',
  'litgpt finetune_lora --config l.yaml --train.micro_batch_size=4',
  'litgpt finetune_lora acme/otter-3b --train.max_seq_length 90',
  'litgpt finetune_full acme/otter-3b --devices 2 --train.max_seq_length 90',
  'swift sft --model acme/otter-3b --dataset d --max_length 90 --torch_dtype bfloat16 --gradient_accumulation_steps 4',
  'tune run lora_finetune_single_device --config t.yaml',
  'tune run --nproc_per_node 2 lora_finetune_distributed --config t.yaml batch_size=2 ~clip_grad_norm model.lora_rank=4',
  'tune run lora_finetune_single_device --config qwen2_5/7B_lora_single_device tokenizer.max_seq_len=700',
  'nohup accelerate launch --num_processes 2 trl/scripts/reward.py --output_dir o --config c.yaml',
];

const checkpointing = (enabled: boolean, more = {}) => ({
  enabled,
  useReentrant: false,
  everyNLayers: 1,
  offload: false,
  ...more,
});
const nf4 = (more = {}) => ({
  bits: 4,
  quantType: 'nf4',
  doubleQuant: true,
  computeDtype: 'bf16',
  upcastRestToFp32: false,
  ...more,
});
const lora = (more = {}) => ({
  r: 12,
  loraAlpha: 20,
  loraDropout: 0.25,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
  ...more,
});

const VALUES: Partial<Record<SettingName, readonly unknown[]>> = {
  perDeviceTrainBatchSize: [1, 8],
  perDeviceEvalBatchSize: [1, 3],
  gradientAccumulationSteps: [1, 4, 32],
  maxLength: [96, 1024],
  optim: ['adamw_8bit', 'paged_adamw_8bit', 'sgd'],
  mixedPrecision: ['no', 'bf16', 'fp16'],
  dtype: ['bf16', 'fp32', 'fp16'],
  lossImpl: ['full', 'chunked', 'fused'],
  attnImplementation: ['eager', 'sdpa', 'flash_attention_2'],
  gradientCheckpointing: [
    checkpointing(false),
    checkpointing(true),
    checkpointing(true, { offload: true }),
    checkpointing(true, { useReentrant: true }),
    checkpointing(true, { everyNLayers: 4 }),
  ],
  method: ['full', 'lora', 'dora', 'qlora', 'ia3'],
  quantization: [nf4(), nf4({ quantType: 'fp4' }), nf4({ doubleQuant: false }), nf4({ upcastRestToFp32: true })],
  lora: [lora(), lora({ targetModules: ['o_proj'] }), lora({ targetModules: ['k_proj', 'o_proj', 'up_proj'] })],
  packing: [true, false],
  maxGradNorm: [0.5, 1],
  dataloaderNumWorkers: [0, 3],
  dataloaderPinMemory: [true, false],
  outputDir: ['/r/there'],
  saveTotalLimit: [2],
  allocatorConf: ['expandable_segments:True'],
};

/** Settings that follow from the one that was written: the method from quantization, padding from packing, and so on. */
const FOLLOWS: Partial<Record<SettingName, readonly SettingName[]>> = {
  method: ['quantization', 'lora', 'dtype', 'mixedPrecision', 'optim'],
  quantization: ['method', 'lora', 'dtype', 'mixedPrecision', 'optim'],
  lora: ['method', 'quantization'],
  dtype: ['quantization', 'lora', 'mixedPrecision'],
  // torchtune packs by flex attention.
  packing: ['paddingFree', 'attentionMask', 'attnImplementation'],
  // What litgpt takes for one key: the global batch, a precision for weights and autocast, and so on.
  perDeviceTrainBatchSize: ['perDeviceEvalBatchSize', 'gradientAccumulationSteps'],
  mixedPrecision: ['dtype', 'lora'],
  // A generating trainer's rows are its completions.
  maxLength: ['generation'],
};

/** Not compared: the dtype of adapters, which TRL takes from the base, and how a checkpointing works that is off. */
function comparable(setting: SettingName, value: unknown): unknown {
  if (setting === 'lora') return { ...(value as object), adapterDtype: undefined };
  const off = setting === 'gradientCheckpointing' && !(value as { enabled: boolean }).enabled;
  return off ? { enabled: false, offload: (value as { offload: boolean }).offload } : value;
}

const settingsBut = (reading: LaunchReading, left: readonly SettingName[]): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(reading.spec)
      .filter(([name]) => !left.includes(name as SettingName))
      .map(([name, setting]) => [name, setting?.value]),
  );

/** How many of `before` are gone, the order kept. */
function lost(before: readonly string[], after: readonly string[]): number {
  let rows = new Array<number>(after.length + 1).fill(0);
  for (const item of before) {
    const next = [0];
    for (const [at, other] of after.entries()) {
      next.push(item === other ? rows[at]! + 1 : Math.max(rows[at + 1]!, next[at]!));
    }
    rows = next;
  }
  return before.length - rows.at(-1)!;
}

/** Places that one setting may have in a launch. */
const MOST: Partial<Record<SettingName, number>> = { lora: 6, quantization: 5, method: 4 };

it.each(LAUNCHES)('what %s says it can be told, it is told, and nothing else', (line) => {
  const machine = { files, gpus: 2 };
  const reading = read(line, machine);
  let written = 0;
  for (const [name, values] of Object.entries(VALUES)) {
    const setting = name as SettingName;
    for (const to of values ?? []) {
      if (reading.writable(setting, to) !== true) {
        expect(() => rewrite(reading, { [setting]: to })).toThrow();
        continue;
      }
      const fitted = rewrite(reading, { [setting]: to });
      const again = readBack(fitted, machine);
      const what = `${line}: ${setting} = ${JSON.stringify(to)} in ${fitted.argv.join(' ')}`;
      expect(comparable(setting, again.spec[setting]?.value), what).toEqual(comparable(setting, to));
      const left = [setting, ...(FOLLOWS[setting] ?? [])];
      expect(settingsBut(again, left), what).toEqual(settingsBut(reading, left));
      const most = MOST[setting] ?? 2;
      const pointers = fitted.files.length;
      expect(lost(reading.command.argv, fitted.argv), what).toBeLessThanOrEqual(most + pointers);
      for (const file of fitted.files) {
        expect(lost(file.before.split('\n'), file.text.split('\n')), what).toBeLessThanOrEqual(most);
      }
      written += 1;
    }
  }
  expect(written).toBeGreaterThan(20);
});
