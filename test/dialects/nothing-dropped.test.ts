import { describe, expect, it } from 'vitest';
import { parseGivenSettings, readLaunchPartly } from '../../src/dialects/index.ts';
import { read, said } from './phrase-book.ts';

const reasons = (line: string, files: Record<string, string>, below = ''): Record<string, string> =>
  Object.fromEntries(
    read(line, { files, gpus: 2 })
      .unread.filter(({ key }) => key.startsWith(below))
      .map(({ key, reason }) => [key, reason]),
  );

describe('every key is a setting or is named with a reason', () => {
  it('of a DeepSpeed config: buckets are not estimated, auto and the global batch are said elsewhere', () => {
    const config = {
      bf16: { enabled: 'auto', bf16_optimizer_states: true },
      fp16: { loss_scale_window: 500 },
      scheduler: { type: 'WarmupLR', params: { warmup_num_steps: 7 } },
      zero_optimization: { stage: 2, overlap_comm: true, reduce_bucket_size: 3e7, round_robin_gradients: true },
      train_batch_size: 48,
      gradient_accumulation_steps: 'auto',
      wall_clock_brakedown: false,
    };
    const line = 'torchrun --nproc-per-node 2 tune.py --do_train --output_dir o --deepspeed d.json';
    const script = 'from transformers import HfArgumentParser, TrainingArguments\n';
    expect(reasons(line, { 'd.json': JSON.stringify(config), 'tune.py': script })).toEqual({
      'bf16.enabled': 'said-elsewhere',
      'bf16.bf16_optimizer_states': 'not-estimated',
      'fp16.loss_scale_window': 'no-effect-on-memory',
      'scheduler.type': 'no-effect-on-memory',
      'scheduler.params.warmup_num_steps': 'no-effect-on-memory',
      'zero_optimization.overlap_comm': 'not-estimated',
      'zero_optimization.reduce_bucket_size': 'not-estimated',
      'zero_optimization.round_robin_gradients': 'no-effect-on-memory',
      train_batch_size: 'said-elsewhere',
      gradient_accumulation_steps: 'said-elsewhere',
      wall_clock_brakedown: 'unknown-key',
      do_train: 'no-effect-on-memory',
    });
  });

  it("of a trainer's own fsdp_config: how layers are wrapped", () => {
    const axolotl =
      'base_model: acme/otter\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nfsdp_version: 2\nfsdp_config:\n  offload_params: false\n  auto_wrap_policy: TRANSFORMER_BASED_WRAP\n';
    expect(reasons('axolotl train a.yml', { 'a.yml': axolotl }, 'fsdp')).toEqual({
      'fsdp_config.auto_wrap_policy': 'not-estimated',
    });
  });

  it('of axolotl: what a warning says is left out stands in the list too, and tf32 beside it', () => {
    const axolotl =
      'base_model: acme/otter\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\ntiled_mlp: true\ncontext_parallel_size: 2\ntf32: true\n';
    expect(reasons('axolotl train a.yml', { 'a.yml': axolotl })).toEqual({
      tiled_mlp: 'not-estimated',
      context_parallel_size: 'not-estimated',
      tf32: 'no-effect-on-memory',
    });
  });
});

it('takes rank and layers of GaLore and APOLLO from LLaMA-Factory', () => {
  const galore = (more: string) =>
    said(
      read('llamafactory-cli train g.yaml', {
        files: { 'g.yaml': `model_name_or_path: acme/otter\nstage: sft\nfinetuning_type: full\n${more}` },
        gpus: 1,
      }),
      'optim',
      'optimArgs',
      'optimTargetModules',
    );
  expect(galore('use_galore: true\ngalore_rank: 96\ngalore_target: q_proj,v_proj\n')).toEqual({
    optim: '"galore_adamw" <- g.yaml:4',
    optimArgs: '"rank=96" <- g.yaml:5',
    optimTargetModules: '["q_proj","v_proj"] <- g.yaml:6',
  });
  const plain = galore('use_apollo: true\n');
  expect([plain.optimArgs, plain.optimTargetModules].map((each) => each?.split(' <- ')[0])).toEqual([
    '"rank=16"',
    '"all-linear"',
  ]);
});

it('knows the stage of a DeepSpeed config that stands in the command itself', () => {
  const config = JSON.stringify({ zero_optimization: { stage: 3, offload_param: { device: 'cpu' } } });
  const script = 'from transformers import HfArgumentParser, TrainingArguments\n';
  for (const text of [config, Buffer.from(config).toString('base64'), Buffer.from(config).toString('base64url')]) {
    const words = [
      'torchrun',
      '--nproc-per-node',
      '2',
      'tune.py',
      '--do_train',
      '--output_dir',
      'o',
      '--deepspeed',
      text,
    ];
    const { reading, errors } = readLaunchPartly(words, {
      cwd: '/w',
      homeDir: '/home',
      environment: {},
      visibleGpus: 2,
      files: { info: () => undefined, list: () => [] } as never,
      source: (path) =>
        path === 'tune.py'
          ? { ok: true, value: { path, absolutePath: `/w/${path}`, text: script } }
          : { ok: false, error: [{ code: 'gone', severity: 'error', message: path }] },
    });
    expect(errors).toEqual([]);
    expect(reading?.spec.distributed?.value).toMatchObject({ strategy: 'zero3', offload: ['parameters'] });
  }
});

it('says the rank that the command gives where the config of torchtune is missing', () => {
  const words = 'tune run lora_finetune_single_device --config gone.yaml model.lora_rank=48 batch_size=3'.split(' ');
  const { reading, errors } = readLaunchPartly(words, {
    cwd: '/w',
    homeDir: '/home',
    environment: {},
    visibleGpus: 1,
    files: { info: () => undefined, list: () => [] } as never,
    source: (path) => ({ ok: false, error: [{ code: 'gone', severity: 'error', message: path, location: path }] }),
  });
  expect(errors.map(({ code }) => code)).toEqual(['gone']);
  expect(reading?.spec.method?.value).toBe('lora');
  expect(reading?.spec.lora?.value).toBeNull();
  expect(reading?.parts).toEqual({ lora: { r: 48 } });
  expect(reading?.spec.perDeviceTrainBatchSize?.value).toBe(3);
});

describe('a slip of the pen', () => {
  it.each([
    ['distributed=2', "write --set 'distributed={ processes_per_node: 2, strategy: zero2 }'"],
    ['lora=16', "write --set 'lora={ r: 16, lora_alpha: 32, target_modules: all-linear }'"],
    ['optim=adamw_8bits', 'did you mean adamw_8bit'],
    ['max_length=long', 'give max_length a whole number from 1'],
  ])('--set %s', (text, help) => {
    const given = parseGivenSettings([text]);
    expect(given.ok ? undefined : given.error[0]!.help).toBe(help);
  });

  it('takes what that help says', () => {
    const given = parseGivenSettings(['distributed={ processes_per_node: 2, strategy: zero2 }']);
    expect(given.ok && given.value.distributed?.value).toMatchObject({ processesPerNode: 2, strategy: 'zero2' });
  });

  it.each([
    ['paged_adamw_8bits', 'did you mean paged_adamw_8bit'],
    ['my_own_thing_entirely', 'give optim a known name'],
  ])('--optim %s', (name, help) => {
    const script = 'from transformers import HfArgumentParser, TrainingArguments\n';
    const line = `python tune.py --model_name_or_path acme/otter --output_dir o --do_train --optim ${name}`;
    const { diagnostics } = read(line, { files: { 'tune.py': script }, gpus: 1 });
    expect(diagnostics.find(({ code }) => code === 'bad-value')?.help).toBe(help);
  });
});
