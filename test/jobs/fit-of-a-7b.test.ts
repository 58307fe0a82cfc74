import { expect, it } from 'vitest';
import { check } from '../../src/jobs/index.ts';
import { renderCheck } from '../../src/report/index.ts';
import { globalBatchSize } from '../../src/spec/index.ts';
import { words } from '../dialects/phrase-book.ts';
import { fakePorts } from '../support/fake-ports.ts';

const LAUNCHES: readonly (readonly [name: string, command: string, files: Readonly<Record<string, string>>])[] = [
  [
    'trl',
    'trl sft --config sft.yaml',
    {
      'sft.yaml':
        'model_name_or_path: meta-llama/Llama-2-7b-hf\ndataset_name: d\nuse_peft: true\nlora_r: 8\nlora_target_modules: all-linear\ndtype: float32\nbf16: false\nmax_length: 1536\nper_device_train_batch_size: 6\ngradient_accumulation_steps: 3\ngradient_checkpointing: false\noutput_dir: out\n',
    },
  ],
  [
    'axolotl',
    'axolotl train lora.yml',
    {
      'lora.yml':
        'base_model: mistralai/Mistral-7B-v0.3\nadapter: lora\nlora_r: 8\nlora_alpha: 16\nlora_target_linear: true\nsequence_len: 1536\nmicro_batch_size: 6\ngradient_accumulation_steps: 3\noptimizer: adamw_torch\nbf16: false\ndatasets: [{path: d, type: alpaca}]\noutput_dir: out\n',
    },
  ],
  [
    'llama-factory',
    'llamafactory-cli train lora.yaml',
    {
      'lora.yaml':
        'model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: lora\nlora_rank: 8\nlora_target: all\ndataset: d\ntemplate: qwen\ncutoff_len: 1536\nper_device_train_batch_size: 6\ngradient_accumulation_steps: 3\ninfer_dtype: float32\ndisable_gradient_checkpointing: true\noutput_dir: out\n',
    },
  ],
  [
    'native',
    'snug.yaml',
    {
      'snug.yaml':
        'command: python train.py --q {quantization} --m {method} --t {dtype} --c {gradient_checkpointing} --b {per_device_train_batch_size} --a {gradient_accumulation_steps}\nmodel: mistralai/Mistral-7B-v0.3\nmethod: lora\nlora: { r: 8, lora_alpha: 16, target_modules: all-linear }\ndtype: fp32\nper_device_train_batch_size: 6\ngradient_accumulation_steps: 3\nmax_length: 1536\n',
    },
  ],
];

async function checked(gpu: string, command: string, files: Readonly<Record<string, string>>) {
  const ports = fakePorts({
    files: Object.fromEntries(Object.entries(files).map(([name, text]) => [`/project/${name}`, text])),
  });
  const [first, ...more] = words(command);
  const target =
    more.length === 0
      ? ({ kind: 'config', path: first! } as const)
      : ({ kind: 'command', argv: [first!, ...more] } as const);
  const outcome = await check(ports, { target, gpu, policy: {}, set: [], starts: false });
  if (outcome.kind !== 'checked') throw new Error(JSON.stringify(outcome.diagnostics));
  return outcome;
}

it.each(LAUNCHES)(
  'LoRA of a 7B model in full precision on 12 GB, by %s: QLoRA, bf16, checkpointing',
  async (_, ...launch) => {
    const { report, values } = await checked('rtx-3060', ...launch);
    const plan = report.plan!;
    if (plan.verdict !== 'rewrite') throw new Error(renderCheck(report, { colour: false, width: 80, unicode: false }));
    expect(plan.values).toMatchObject({
      method: 'qlora',
      quantization: { bits: 4, quantType: 'nf4', computeDtype: 'bf16' },
      dtype: 'bf16',
      gradientCheckpointing: { enabled: true },
    });
    expect(globalBatchSize(plan.values)).toBe(18);
    expect(globalBatchSize(values!)).toBe(18);
    expect(plan.estimate.vram.devicePeakBytes).toBeLessThanOrEqual(report.budget!.usableBytes);
    expect(report.fitted).toBeDefined();
  },
);

it('a full fine-tune of 8B on 24 GB is refused, with what is missing and what would fit', async () => {
  const { report } = await checked('rtx-4090', 'trl sft --config full.yaml', {
    'full.yaml':
      'model_name_or_path: meta-llama/Llama-3.1-8B\ndataset_name: d\nbf16: true\nmax_length: 1536\nper_device_train_batch_size: 4\noutput_dir: out\n',
  });
  if (report.plan?.verdict !== 'refuse') throw new Error(report.plan?.verdict);
  const { refusal } = report.plan;
  expect(refusal.shortfallBytes).toBeGreaterThan(0);
  expect(refusal.wouldFit.map(({ allow }) => allow)).toContain('method');
  const text = renderCheck(report, { colour: false, width: 400, unicode: false });
  expect(text).toMatch(/error\[does-not-fit\]: this run needs [\d.]+ GiB on a GPU with 24\.0 GiB free/);
  expect(text).toMatch(/the smallest the policy permits needs [\d.]+ GiB/);
  expect(text).toMatch(/help: --allow \S*method would fit with [\d.]+ GiB/);
});
