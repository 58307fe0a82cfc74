import { describe, expect, it } from 'vitest';
import { read, readBack, rewrite, said } from './phrase-book.ts';

/**
 * `bf16: true` for the same full fine-tuning of the same model: what the weights (and so gradients and AdamW's states) are held
 * in differs with the tool, 8 bytes a parameter or 16. Other traps stand with their dialects: chunked loss in trl/, the switch
 * that needs a value in hf-trainer/, `default_config.yaml` in launchers/, a dropped FSDP config in llm-foundry/, PyYAML's
 * numbers in yaml-read.test.ts.
 */
describe('bf16: true, 8 or 16 bytes a parameter', () => {
  const axolotl = 'base_model: acme/otter\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nbf16: true\n';
  const factory = 'model_name_or_path: acme/otter\nstage: sft\nfinetuning_type: full\nbf16: true\n';
  const foundry =
    'model: {name: hf_causal_lm, pretrained_model_name_or_path: acme/otter}\ntrain_loader: {name: text}\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: 1\nmax_seq_len: 64\nprecision: amp_bf16\n';

  it.each<[string, string, Record<string, string>, string]>([
    ['TRL, fp32 under autocast', 'trl sft --model_name_or_path acme/otter --bf16 true', {}, '"fp32" "bf16"'],
    ['TRL told a dtype', 'trl sft --model_name_or_path acme/otter --bf16 true --dtype bfloat16', {}, '"bf16" "bf16"'],
    [
      'a script, the dtype of the checkpoint',
      'python tune.py --model_name_or_path acme/otter --bf16 true --output_dir o --do_train',
      { 'tune.py': 'from transformers import HfArgumentParser, TrainingArguments\n' },
      '"auto" "bf16"',
    ],
    ['axolotl, bf16', 'axolotl train a.yml', { 'a.yml': axolotl }, '"bf16" "bf16"'],
    ['axolotl, bf16: full', 'axolotl train a.yml', { 'a.yml': axolotl.replace('true', 'full') }, '"bf16" "no"'],
    ['LLaMA-Factory, cast up', 'llamafactory-cli train f.yaml', { 'f.yaml': factory }, '"fp32" "bf16"'],
    [
      'LLaMA-Factory, pure',
      'llamafactory-cli train f.yaml',
      { 'f.yaml': factory.replace('bf16', 'pure_bf16') },
      '"bf16" "no"',
    ],
    ['LLM Foundry, fp32', 'composer train/train.py l.yaml', { 'l.yaml': foundry }, '"fp32" "bf16"'],
    [
      'OpenRLHF, bf16 under DeepSpeed',
      'torchrun -m openrlhf.cli.train_sft --pretrain acme/otter --train_batch_size 8',
      {},
      '"bf16" "bf16"',
    ],
  ])('%s', (_, line, files, expected) => {
    const { dtype, mixedPrecision } = said(read(line, { files, gpus: 1 }), 'dtype', 'mixedPrecision');
    expect([dtype, mixedPrecision].map((each) => each!.split(' <- ')[0]).join(' ')).toBe(expected);
  });
});

describe('two defaults for one thing', () => {
  it('FSDP is version 1 in an accelerate file and 2 in TrainingArguments', () => {
    const file = 'distributed_type: FSDP\nnum_processes: 2\nnum_machines: 1\nfsdp_config: {}\n';
    const script = 'from transformers import HfArgumentParser, TrainingArguments\n';
    const flags = '--model_name_or_path acme/otter --output_dir o --do_train';
    const files = { 'a.yaml': file, 'tune.py': script };
    const [accelerated, own] = [
      `accelerate launch --config_file a.yaml tune.py ${flags}`,
      `torchrun --nproc-per-node 2 tune.py ${flags} --fsdp true`,
    ].map((line) => read(line, { files, gpus: 2 }).spec.distributed?.value?.strategy);
    expect([accelerated, own]).toEqual(['fsdp1', 'fsdp2']);
  });

  it('evaluation takes 8 rows in scripts, the micro batch in axolotl, one row behind a searched batch in LLM Foundry', () => {
    const rows = (line: string, files = {}) => read(line, { files, gpus: 1 }).spec.perDeviceEvalBatchSize?.value;
    expect(rows('trl sft --model_name_or_path acme/otter --per_device_train_batch_size 1')).toBe(8);
    const axolotl = 'base_model: acme/otter\nmicro_batch_size: 3\ngradient_accumulation_steps: 1\n';
    expect(rows('axolotl train a.yml', { 'a.yml': axolotl })).toBe(3);
    const foundry =
      'model: {name: hf_causal_lm}\ntrain_loader: {name: text}\nglobal_train_batch_size: 8\ndevice_train_microbatch_size: auto\nmax_seq_len: 64\n';
    expect(rows('composer train/train.py l.yaml', { 'l.yaml': foundry })).toBe(1);
  });
});

describe('what is told in one place and holds in another', () => {
  const script = 'from transformers import HfArgumentParser, TrainingArguments\n';
  const flags = '--model_name_or_path acme/otter --output_dir o --do_train';

  it('autocast of accelerate holds where the trainer has none, so that it is turned off in both places', () => {
    const files = {
      'tune.py': script,
      'a.yaml':
        'compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: bf16 # here\n',
    };
    const reading = read(`accelerate launch --config_file a.yaml tune.py ${flags} --bf16 true`, { files, gpus: 2 });
    const fitted = rewrite(reading, { mixedPrecision: 'no' });
    expect(fitted.argv.slice(-2)).toEqual(['--bf16', 'false']);
    expect(fitted.files.map(({ text }) => text)).toEqual([files['a.yaml'].replace('bf16', "'no'")]);
    expect(readBack(fitted, { files, gpus: 2 }).spec.mixedPrecision?.value).toBe('no');
  });

  it("an optimizer of DeepSpeed's own config beats the flag, so that none is written", () => {
    const config = { zero_optimization: { stage: 1 }, optimizer: { type: 'AdamW', params: { lr: 3e-5 } } };
    const line = `torchrun --nproc-per-node 2 tune.py ${flags} --deepspeed d.json`;
    const of = (ds: object) =>
      read(line, { files: { 'tune.py': script, 'd.json': JSON.stringify(ds) }, gpus: 2 }).writable(
        'optim',
        'adamw_8bit',
      );
    expect(of(config)).toBe('the DeepSpeed config brings its own optimizer');
    expect(of({ zero_optimization: { stage: 1 } })).toBe(true);
  });

  it('plain python over several GPUs is nn.DataParallel in a script, and layers side by side in TRL', () => {
    const files = { 'tune.py': script };
    const alone = read(`python tune.py ${flags}`, { files, gpus: 3 }).spec.distributed?.value;
    expect(alone).toMatchObject({ strategy: 'dp', processesPerNode: 3 });
    const trl = read('python trl/scripts/sft.py --model_name_or_path acme/otter', { gpus: 3 });
    expect(trl.spec.distributed?.value).toMatchObject({ processesPerNode: 1 });
    expect(trl.diagnostics.map(({ message }) => message).join()).toContain('spreads the layers over 3 GPUs');
    const one = read(`python tune.py ${flags}`, { files, gpus: 1 }).spec.distributed?.value;
    expect(one).toMatchObject({ processesPerNode: 1 });
    expect(one?.strategy).not.toBe('dp');
  });

  it("accelerate's default_config.yaml holds without being named", () => {
    const path = '/home/u/.cache/huggingface/accelerate/default_config.yaml';
    const config =
      "compute_environment: LOCAL_MACHINE\ndistributed_type: MULTI_GPU\nnum_processes: 5\nmixed_precision: 'no'\n";
    const processes = (files: Record<string, string>) =>
      read(`accelerate launch tune.py ${flags}`, { files: { 'tune.py': script, ...files }, gpus: 8 }).spec.distributed;
    expect(processes({ [path]: config })?.value?.processesPerNode).toBe(5);
    expect(processes({})?.value?.processesPerNode).toBe(8);
  });

  it('fused LoRA layers of axolotl are named as not estimated, and a plain key beside them is not', () => {
    const config =
      'base_model: acme/otter\nmicro_batch_size: 1\ngradient_accumulation_steps: 1\nadapter: lora\nlora_r: 8\nlora_alpha: 8\nlora_target_linear: true\nlora_mlp_kernel: true\nlora_fan_in_fan_out: false\n';
    const { unread } = read('axolotl train a.yml', { files: { 'a.yml': config }, gpus: 1 });
    const reason = (name: string) => unread.find(({ key }) => key === name)?.reason;
    expect([reason('lora_mlp_kernel'), reason('lora_fan_in_fan_out')]).toEqual([
      'not-estimated',
      'no-effect-on-memory',
    ]);
  });
});
