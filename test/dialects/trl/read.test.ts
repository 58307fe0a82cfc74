import { describe, expect, it } from 'vitest';
import { problemsOf, read, said } from '../phrase-book.ts';

const yaml = `# otter, supervised
model_name_or_path: acme/otter-3b
per_device_train_batch_size: 6
gradient_accumulation_steps: "5"
max_length: 1536
packing: on
learning_rate: 2e-4
optim: paged_adamw_8bit
attn_implementation: flash_attention_2
output_dir: runs/otter
env:
  TOKENIZERS_PARALLELISM: no
  DEPTH: 3
`;
const files = { 'conf/sft.yaml': yaml };

describe('the trl command', () => {
  it('takes the flag over the YAML over the defaults of TRL 1.13', () => {
    const reading = read('trl sft --config conf/sft.yaml --per_device_train_batch_size 3', { files, gpus: 1 });
    expect(reading.stack).toEqual([{ dialect: 'trl', kind: 'trainer', via: 'cli' }]);
    expect(reading.files).toEqual(['conf/sft.yaml']);
    expect(reading.env).toEqual({ TOKENIZERS_PARALLELISM: 'False', DEPTH: '3' });
    expect(reading.programIndex).toBe(0);
    expect(said(reading, ...(Object.keys(reading.spec) as (keyof typeof reading.spec)[]))).toEqual({
      modelNameOrPath: '"acme/otter-3b" <- conf/sft.yaml:2',
      objective: '"sft" <- trl sft',
      perDeviceTrainBatchSize: '3 <- argv[5]',
      perDeviceEvalBatchSize: '8 <- default trl 1.13',
      eval: 'false <- default trl 1.13',
      gradientAccumulationSteps: '5 <- conf/sft.yaml:4',
      mixedPrecision: '"bf16" <- default trl 1.13',
      dtype: '"fp32" <- default trl 1.13',
      method: '"full" <- default trl 1.13',
      optim: '"paged_adamw_8bit" <- conf/sft.yaml:8',
      maxGradNorm: '1 <- default trl 1.13',
      maxLength: '1536 <- conf/sft.yaml:5',
      packing: 'true <- conf/sft.yaml:6',
      paddingFree: 'true <- conf/sft.yaml:6',
      attentionMask: 'false <- conf/sft.yaml:6',
      attnImplementation: '"flash_attention_2" <- conf/sft.yaml:9',
      gradientCheckpointing:
        '{"everyNLayers":1,"offload":false,"enabled":true,"useReentrant":false} <- default trl 1.13',
      lossImpl: '"chunked" <- default trl 1.13',
      dataloaderNumWorkers: '0 <- default trl 1.13',
      dataloaderPinMemory: 'true <- default trl 1.13',
      saveTotalLimit: 'null <- default trl 1.13',
      outputDir: '"runs/otter" <- conf/sft.yaml:10',
      distributed: expect.stringMatching(/^\{"nodes":1,"processesPerNode":1,"strategy":"none","offload":\[\]\} <- /),
    });
    expect(reading.unread).toEqual([
      { key: 'learning_rate', origin: { kind: 'file', path: 'conf/sft.yaml', line: 7 }, reason: 'no-effect-on-memory' },
    ]);
  });

  it.each([
    ['sft', 'sft', 'chunked', 1024],
    ['dpo', 'dpo', 'full', 1024],
    ['kto', 'kto', 'full', 1024],
    ['reward', 'reward', 'full', 1024],
    ['grpo', 'grpo', 'full', 512],
    ['rloo', 'rloo', 'full', 512],
  ])('%s has an objective, a loss and a length of its own', (command, objective, lossImpl, length) => {
    const { spec } = read(`trl ${command} --model_name_or_path acme/otter-3b`, { gpus: 1 });
    expect([spec.objective?.value, spec.lossImpl?.value, spec.maxLength?.value]).toEqual([objective, lossImpl, length]);
  });

  it('says that prompts come on top of a completion', () => {
    const reading = read('trl grpo --max_completion_length 700', { gpus: 1 });
    expect(said(reading, 'maxLength').maxLength).toBe('700 <- argv[3]');
    expect(reading.diagnostics.map((each) => `${each.code} ${each.location}`)).toEqual(['prompts-not-counted argv[3]']);
  });

  it.each([
    ['', 'chunked'],
    ['--loss_type chunked_nll', 'chunked'],
    ['--loss_type nll', 'full'],
    ['--loss_type dft', 'full'],
    ['--use_liger_kernel', 'fused'],
  ])('computes the loss of sft %s as %s', (flags, expected) => {
    expect(read(`trl sft ${flags} --seed 1`, { gpus: 1 }).spec.lossImpl?.value).toBe(expected);
  });

  it.each([
    ['', [false, false, true]],
    ['--packing', [true, true, false]],
    ['--packing --packing_strategy bfd_split', [true, true, false]],
    ['--packing --packing_strategy wrapped', [true, false, true]],
    ['--padding_free true', [false, true, false]],
  ])('pads and packs with %s', (flags, expected) => {
    const { spec } = read(`trl sft --seed 1 ${flags}`, { gpus: 1 });
    expect([spec.packing?.value, spec.paddingFree?.value, spec.attentionMask?.value]).toEqual(expected);
  });

  it.each([
    ['--bf16 false', '"no" <- argv[5]'],
    ['--fp16 true', '"fp16" <- argv[5]'],
    ['--fp16 false', '"bf16" <- default trl 1.13'],
    ['--bf16 true', '"bf16" <- argv[5]'],
  ])('reads autocast of %s', (flags, expected) => {
    expect(said(read(`trl sft --seed 1 ${flags}`, { gpus: 1 }), 'mixedPrecision').mixedPrecision).toBe(expected);
  });

  it('reads a checkpointing offload by either name', () => {
    const on = { enabled: true, useReentrant: false, everyNLayers: 1, offload: true };
    expect(read('trl sft --activation_offloading true', { gpus: 1 }).spec.gradientCheckpointing?.value).toEqual(on);
    expect(
      read(`trl sft --gradient_checkpointing_kwargs '{"offload": true}'`, { gpus: 1 }).spec.gradientCheckpointing
        ?.value,
    ).toEqual(on);
    expect(read('trl sft --no_gradient_checkpointing', { gpus: 1 }).spec.gradientCheckpointing?.value?.enabled).toBe(
      false,
    );
  });

  it.each([
    ['max_length none', '--max_length none', 'unbounded-rows'],
    ['the batch search of the trainer', '--auto_find_batch_size true', 'auto-find-batch-size'],
    ['a name of the past', '--torch_dtype bfloat16', 'former-name'],
  ])('warns of %s', (_, flags, code) => {
    expect(read(`trl sft ${flags}`, { gpus: 1 }).diagnostics.map((each) => each.code)).toEqual([code]);
  });

  it.each([
    ['a bare --bf16', 'trl sft --seed 1 --bf16', 'bad-option', 'argv[4]'],
    ['a value of the wrong kind', 'trl sft --max_length long', 'bad-value', 'argv[3]'],
    ['an ambiguous beginning', 'trl sft --lora_target q_proj', 'bad-option', 'argv[2]'],
    ['a quantised model without an adapter', 'trl sft --load_in_4bit', 'quantized-full', 'argv[2]'],
    ['a config that is not there', 'trl sft --config conf/none.yaml', 'cannot-read', 'conf/none.yaml'],
    ['an accelerate config nobody has', 'trl sft --accelerate_config zero7', 'unknown-accelerate-config', 'argv[3]'],
  ])('stops at %s', (_, line, code, location) => {
    expect(problemsOf(line, { gpus: 1 }).map((each) => [each.code, each.location])).toEqual([[code, location]]);
  });

  it('says line and column of a config that is no YAML', () => {
    const broken = { 'b.yaml': 'model_name_or_path: a\n\tmax_length: 3\n' };
    expect(problemsOf('trl sft --config b.yaml', { files: broken, gpus: 1 })).toMatchObject([
      { location: 'b.yaml:2:1', code: 'yaml-tab' },
    ]);
  });

  it('does not read --config=FILE', () => {
    expect(read('trl sft --seed 1 --config=conf/sft.yaml', { files, gpus: 1 }).files).toEqual([]);
  });

  it('is not a trl that does something else', () => {
    expect(read('trl env').stack.map((entry) => entry.dialect)).not.toContain('trl');
    expect(read('trl-sft sft').stack.map((entry) => entry.dialect)).not.toContain('trl');
  });
});

describe('adapters', () => {
  const peft = (flags: string) => read(`trl sft ${flags} --seed 1`, { gpus: 1 });

  it('come with use_peft, sized by the flags or by TRL', () => {
    const reading = peft('--use_peft --lora_r 24');
    expect(said(reading, 'method', 'lora')).toEqual({
      method: '"lora" <- argv[2]',
      lora: '{"r":24,"loraAlpha":32,"loraDropout":0.05,"targetModules":"default","adapterDtype":"fp32","modulesToSave":[]} <- argv[4]',
    });
  });

  it('do not come with the other LoRA flags alone', () => {
    const reading = peft('--lora_r 24 --lora_alpha 9');
    expect(said(reading, 'method', 'lora')).toEqual({ method: '"full" <- default trl 1.13', lora: 'absent' });
    expect(reading.unread.filter((each) => /use_peft/.test(each.reason)).map((each) => each.key)).toEqual([
      'lora_r',
      'lora_alpha',
    ]);
  });

  it.each([
    ['--lora_target_modules all-linear', 'all-linear'],
    ['--lora_target_modules q_proj o_proj', ['q_proj', 'o_proj']],
    [String.raw`--lora_target_modules '.*\.(q_proj|o_proj)$'`, ['q_proj', 'o_proj']],
    ["--lora_target_modules 'model.layers.[0-3].mlp.up_proj'", ['model.layers.[0-3].mlp.up_proj']],
    ['', 'default'],
  ])('sit where %s says', (flags, expected) => {
    expect(peft(`--use_peft ${flags}`).spec.lora?.value?.targetModules).toEqual(expected);
  });

  it('are bf16 on a quantised base, which computes in the load dtype', () => {
    const reading = peft('--use_peft --load_in_4bit --use_bnb_nested_quant true');
    expect(said(reading, 'method', 'quantization')).toEqual({
      method: '"qlora" <- argv[3]',
      quantization:
        '{"bits":4,"quantType":"nf4","doubleQuant":true,"computeDtype":"fp32","upcastRestToFp32":false} <- argv[3]',
    });
    expect(reading.spec.lora?.value?.adapterDtype).toBe('bf16');
    expect(peft('--use_peft --load_in_4bit --dtype bfloat16').spec.quantization?.value?.computeDtype).toBe('bf16');
    expect(peft('--use_peft --load_in_8bit').spec.quantization?.value).toMatchObject({ bits: 8, quantType: 'int8' });
  });

  it('keep the dtype of the base under ZeRO-3', () => {
    expect(peft('--use_peft --dtype bfloat16 --accelerate_config zero3').spec.lora?.value?.adapterDtype).toBe('bf16');
    expect(peft('--use_peft --dtype bfloat16 --accelerate_config zero2').spec.lora?.value?.adapterDtype).toBe('fp32');
  });
});

describe('what trl hands to accelerate', () => {
  const distributed = (line: string, gpus?: number, more = {}) =>
    read(line, { gpus, files: { ...files, ...more } }).spec.distributed?.value;

  it.each([
    ['every visible GPU', 'trl sft --seed 1', 3, { processesPerNode: 3, strategy: 'ddp' }],
    ['a number on the command line', 'trl sft --num_processes 2', 2, { processesPerNode: 2, strategy: 'ddp' }],
    [
      'a config that TRL ships',
      'trl sft --accelerate_config fsdp2 --num_processes 4',
      4,
      { processesPerNode: 4, strategy: 'fsdp2' },
    ],
    ['another one', 'trl sft --accelerate_config zero1', 8, { processesPerNode: 8, strategy: 'zero1' }],
    [
      'one that starts a single process',
      'trl sft --accelerate_config single_gpu',
      8,
      { processesPerNode: 1, strategy: 'none' },
    ],
  ])('is %s', (_, line, gpus, expected) => {
    expect(distributed(line, gpus)).toMatchObject(expected);
  });

  it('may stand in the YAML', () => {
    const reading = read('trl sft --config c.yaml', {
      files: { 'c.yaml': 'num_processes: 3\nmixed_precision: fp16\n' },
      gpus: 3,
    });
    expect(reading.spec.distributed).toEqual({
      value: { nodes: 1, processesPerNode: 3, strategy: 'ddp', offload: [] },
      origin: { kind: 'file', path: 'c.yaml', line: 1 },
    });
    // TRL turns bf16 on by itself, which wins over what accelerate asks for.
    expect(reading.spec.mixedPrecision?.value).toBe('bf16');
    expect(reading.unread).toEqual([]);
  });

  it('tells keys that nobody takes', () => {
    expect(read('trl sft --flavour sweet', { gpus: 1 }).unread).toEqual([
      { key: 'flavour', origin: { kind: 'argv', index: 3 }, reason: 'unknown-key' },
    ]);
  });
});

describe('YAML that must not be taken at its word', () => {
  it.each([
    ['duplicate-key', 'max_length: 5\nmax_length: 900\n', 900],
    ['alias', 'seed: &n 900\nmax_length: *n\n', 900],
    ['merge-key', 'base: &b {max_length: 900}\n<<: *b\n', 900],
    ['interpolation', `max_length: \${LENGTH}\n`, null],
  ])('reads through a %s and will not write through it', (reason, text, value) => {
    const reading = read('trl sft --config c.yaml', { files: { 'c.yaml': text }, gpus: 1 });
    expect(reading.spec.maxLength?.value).toBe(value);
    expect(reading.unread.filter((each) => each.key === 'max_length').map((each) => each.reason)).toEqual([reason]);
    expect(reading.writable('maxLength', 100)).not.toBe(true);
    expect(reading.writable('perDeviceTrainBatchSize', 1)).toBe(true);
  });
});

describe('scripts', () => {
  it.each([
    ['python trl/scripts/dpo.py --seed 1', 'dpo'],
    ['python -m trl.scripts.kto --seed 1', 'kto'],
    ['accelerate launch --num_processes 1 /opt/trl/trl/scripts/reward.py --seed 1', 'reward'],
  ])('of TRL itself: %s', (line, objective) => {
    const reading = read(line, { gpus: 1 });
    expect(reading.stack.at(-1)).toEqual({ dialect: 'trl', kind: 'trainer' });
    expect(reading.spec.objective?.value).toBe(objective);
    expect(reading.resume.kind).toBe('unsupported');
  });

  it('that use TRL are known by their text', () => {
    const text =
      'from trl import TrlParser, DPOTrainer\ntrainer.train(resume_from_checkpoint=c.resume_from_checkpoint)\n';
    const reading = read('python go.py --beta 0.3', { files: { 'go.py': text }, gpus: 1 });
    expect(reading.stack.at(-1)).toEqual({ dialect: 'trl', kind: 'trainer' });
    expect(reading.spec.objective?.value).toBe('dpo');
    expect(reading.resume.kind).toBe('supported');
  });

  it('are no TRL for a --config alone where the text says otherwise', () => {
    const text = 'import argparse\n# --config\n';
    const reading = read('python go.py --config conf/sft.yaml', { files: { ...files, 'go.py': text } });
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['python']);
  });

  it('that cannot be read are TRL when they take a YAML config', () => {
    const reading = read('python go.py --config conf/sft.yaml', { files, gpus: 1 });
    expect(reading.stack.at(-1)?.dialect).toBe('trl');
    expect(said(reading, 'maxLength').maxLength).toBe('1536 <- conf/sft.yaml:5');
  });

  it('spread a model given by name over the GPUs of one process', () => {
    const reading = read('python trl/scripts/sft.py --seed 1', { gpus: 2 });
    expect(reading.spec.distributed?.value).toMatchObject({ processesPerNode: 1, strategy: 'none' });
    expect(reading.diagnostics.map((each) => each.code)).toEqual(['layers-over-gpus']);
  });
});
