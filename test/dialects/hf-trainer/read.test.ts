import { describe, expect, it } from 'vitest';
import { problemsOf, read, said } from '../phrase-book.ts';

const parserScript = `
from transformers import HfArgumentParser, TrainingArguments, Trainer
args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
`;

describe('a script with TrainingArguments flags', () => {
  it('names every value with the token it came from, and the version behind every default', () => {
    const reading = read(
      'python tune.py --model_name_or_path acme/otter-3b --per_device_train_batch_size 6 --gradient-accumulation-steps=5 --bf16 --optim adafactor --max_seq_length 704 --output_dir runs/a',
    );
    expect(reading.stack).toEqual([
      { dialect: 'python', kind: 'launcher' },
      { dialect: 'hf-trainer', kind: 'trainer' },
    ]);
    expect(
      said(
        reading,
        'modelNameOrPath',
        'perDeviceTrainBatchSize',
        'perDeviceEvalBatchSize',
        'gradientAccumulationSteps',
        'mixedPrecision',
        'optim',
        'maxLength',
        'outputDir',
        'dtype',
        'method',
        'maxGradNorm',
        'lossImpl',
        'attnImplementation',
        'saveTotalLimit',
      ),
    ).toEqual({
      modelNameOrPath: '"acme/otter-3b" <- argv[3]',
      perDeviceTrainBatchSize: '6 <- argv[5]',
      perDeviceEvalBatchSize: '8 <- default transformers 5.17',
      gradientAccumulationSteps: '5 <- argv[6]',
      mixedPrecision: '"bf16" <- argv[7]',
      optim: '"adafactor" <- argv[9]',
      maxLength: '704 <- argv[11]',
      outputDir: '"runs/a" <- argv[13]',
      dtype: '"auto" <- default transformers 5.17',
      method: '"full" <- default transformers 5.17',
      maxGradNorm: '1 <- default transformers 5.17',
      lossImpl: '"full" <- default transformers 5.17',
      attnImplementation: '"sdpa" <- default transformers 5.17',
      saveTotalLimit: 'null <- default transformers 5.17',
    });
  });

  it.each([
    ['--per_device_train_batch_size 3', '3 <- argv[3]'],
    ['--per-device-train-batch-size 3', '3 <- argv[3]'],
    ['--per_device_train_batch_size=3', '3 <- argv[2]'],
    ['--per_device_train 3', '3 <- argv[3]'],
    ['--per_device_train_batch_size 2 --per_device_train_batch_size 3', '3 <- argv[5]'],
    ['--per_gpu_train_batch_size 3', '3 <- argv[3]'],
  ])('reads the batch in %s', (flags, expected) => {
    expect(said(read(`python tune.py ${flags} --num_train_epochs 1`), 'perDeviceTrainBatchSize')).toEqual({
      perDeviceTrainBatchSize: expected,
    });
  });

  it('does not take a spelling that is half _ and half - for the field', () => {
    const reading = read('python tune.py --per_device-train-batch-size 3 --num_train_epochs 1');
    expect(said(reading, 'perDeviceTrainBatchSize').perDeviceTrainBatchSize).toBe('8 <- default transformers 5.17');
    expect(reading.unread).toContainEqual({
      key: 'per_device-train-batch-size',
      origin: { kind: 'argv', index: 3 },
      reason: 'unknown-key',
    });
  });

  it.each([
    ['--bf16', '"bf16" <- argv[4]'],
    ['--bf16 True', '"bf16" <- argv[5]'],
    ['--bf16 n', '"no" <- argv[5]'],
    ['--bf16=0', '"no" <- argv[4]'],
    ['--fp16 yes', '"fp16" <- argv[5]'],
    ['--fp16 --bf16', '"fp16" <- argv[4]'],
    ['--seed 3', '"no" <- default transformers 5.17'],
  ])('reads autocast of %s', (flags, expected) => {
    expect(said(read(`python tune.py --do_train true ${flags}`), 'mixedPrecision').mixedPrecision).toBe(expected);
  });

  it('lets ACCELERATE_MIXED_PRECISION hold only where no flag speaks', () => {
    const environment = { ACCELERATE_MIXED_PRECISION: 'fp16' };
    expect(said(read('python tune.py --do_train', { environment }), 'mixedPrecision').mixedPrecision).toBe(
      '"fp16" <- env ACCELERATE_MIXED_PRECISION',
    );
    expect(said(read('python tune.py --do_train --bf16', { environment }), 'mixedPrecision').mixedPrecision).toBe(
      '"bf16" <- argv[3]',
    );
  });

  it.each([
    ['--gradient_checkpointing', { enabled: true, useReentrant: false, everyNLayers: 1, offload: false }],
    [
      `--gradient_checkpointing --gradient_checkpointing_kwargs '{"use_reentrant": true}'`,
      { enabled: true, useReentrant: true, everyNLayers: 1, offload: false },
    ],
    [
      `--gradient_checkpointing --gradient_checkpointing_kwargs '{"every_n_layers": 3, "offload": true}'`,
      { enabled: true, useReentrant: false, everyNLayers: 3, offload: true },
    ],
    // Kwargs that name something else go to torch, whose own default is the reentrant form.
    [
      `--gradient_checkpointing --gradient_checkpointing_kwargs '{"preserve_rng_state": false}'`,
      { enabled: true, useReentrant: true, everyNLayers: 1, offload: false },
    ],
    ['--seed 1', { enabled: false, useReentrant: false, everyNLayers: 1, offload: false }],
  ])('reads checkpointing of %s', (flags, expected) => {
    expect(read(`python tune.py --do_train ${flags}`).spec.gradientCheckpointing?.value).toEqual(expected);
  });

  it.each([
    ['--eval_strategy steps', 'true <- argv[4]'],
    ['--evaluation_strategy epoch', 'true <- argv[4]'],
    ['--do_eval', 'true <- argv[3]'],
    ['--eval_strategy no', 'false <- argv[4]'],
    ['--eval_steps 10', 'false <- default transformers 5.17'],
  ])('says whether %s evaluates', (flags, expected) => {
    expect(said(read(`python tune.py --do_train ${flags}`), 'eval').eval).toBe(expected);
  });

  it('says of a value that is no number where it stands and what was expected', () => {
    const reading = read('python tune.py --per_device_train_batch_size many --do_train');
    expect(reading.spec.perDeviceTrainBatchSize?.value).toBeNull();
    expect(reading.diagnostics).toContainEqual({
      code: 'bad-value',
      severity: 'warning',
      message: 'per_device_train_batch_size is "many", expected a whole number above 0',
      location: 'argv[3]',
      help: 'give per_device_train_batch_size a whole number above 0',
    });
  });

  it('leaves a variable that nobody expanded unknown', () => {
    const reading = read(`python tune.py --per_device_train_batch_size '\${BS}' --do_train`);
    expect(reading.spec.perDeviceTrainBatchSize?.value).toBeNull();
    expect(reading.unread).toContainEqual({
      key: 'per_device_train_batch_size',
      origin: { kind: 'argv', index: 3 },
      reason: 'interpolation',
    });
  });

  it('warns of the batch search of the trainer itself', () => {
    const reading = read('python tune.py --auto_find_batch_size true --do_train');
    expect(reading.diagnostics.map((each) => `${each.severity} ${each.code} ${each.location}`)).toEqual([
      'warning auto-find-batch-size argv[3]',
    ]);
    expect(read('python tune.py --auto_find_batch_size false --do_train').diagnostics).toEqual([]);
  });

  it('tells keys without effect on memory from keys nobody knows', () => {
    const reading = read('python tune.py --do_train --learning_rate 3e-5 --flavour sweet');
    expect(Object.fromEntries(reading.unread.map((each) => [each.key, each.reason]))).toEqual({
      do_train: 'no-effect-on-memory',
      learning_rate: 'no-effect-on-memory',
      flavour: 'unknown-key',
    });
  });
});

describe('what makes a script one of these', () => {
  const stackOf = (line: string, files = {}): string[] => read(line, { files }).stack.map((entry) => entry.dialect);

  it.each([
    ['a flag that only TrainingArguments has', 'python x.py --gradient_accumulation_steps 2', {}],
    ['text that parses TrainingArguments', 'python x.py', { 'x.py': parserScript }],
    ['its one argument being a JSON file of such names', 'python x.py a.json', { 'a.json': '{"output_dir": "o"}' }],
  ])('is %s', (_, line, files) => {
    expect(stackOf(line, files)).toEqual(['python', 'hf-trainer']);
  });

  it.each([
    ['flags that any program could have', 'python x.py --seed 4 --fp16 --output_dir o', {}],
    [
      'text that speaks of TrainingArguments without parsing them',
      'python x.py',
      { 'x.py': '# no TrainingArguments\nprint(1)' },
    ],
    ['a JSON file of other names', 'python x.py a.json', { 'a.json': '{"width": 4}' }],
  ])('is not %s', (_, line, files) => {
    const reading = read(line, { files });
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['python']);
    expect(reading.diagnostics.map((each) => each.code)).toEqual(['unknown-trainer']);
  });
});

describe('arguments from files', () => {
  const json = '{\n  "model_name_or_path": "acme/otter-3b",\n  "per_device_train_batch_size": 6,\n  "fp16": true\n}\n';

  it('reads the one JSON file, each key with its line', () => {
    const reading = read('python tune.py conf/args.json', { files: { 'conf/args.json': json } });
    expect(reading.files).toEqual(['conf/args.json']);
    expect(said(reading, 'modelNameOrPath', 'perDeviceTrainBatchSize', 'mixedPrecision')).toEqual({
      modelNameOrPath: '"acme/otter-3b" <- conf/args.json:2',
      perDeviceTrainBatchSize: '6 <- conf/args.json:3',
      mixedPrecision: '"fp16" <- conf/args.json:4',
    });
  });

  it('says where a JSON file is broken', () => {
    expect(problemsOf('python tune.py args.json', { files: { 'args.json': '{\n  "seed": 1,\n  seed: 2\n}' } })).toEqual(
      [
        {
          code: 'json-syntax',
          severity: 'error',
          message: 'not valid JSON: a key in double quotes is missing',
          location: 'args.json:3:3',
          excerpt: '  seed: 2',
          help: 'correct the line; the trainer would stop at it too',
        },
      ],
    );
  });

  it('says that the JSON file is missing', () => {
    expect(problemsOf('python tune.py args.json').map((each) => each.location)).toEqual(['args.json']);
  });

  it('reads tune.args beside tune.py, which the command line beats', () => {
    const files = { 'tune.args': '--per_device_train_batch_size 6\n--gradient_accumulation_steps 7\n' };
    expect(
      said(
        read('python tune.py --do_train --gradient_accumulation_steps 2', { files }),
        'perDeviceTrainBatchSize',
        'gradientAccumulationSteps',
      ),
    ).toEqual({
      perDeviceTrainBatchSize: '6 <- tune.args:1',
      gradientAccumulationSteps: '2 <- argv[4]',
    });
  });
});

describe('several GPUs', () => {
  it('go into nn.DataParallel under a plain python', () => {
    const reading = read('python tune.py --do_train', { gpus: 3 });
    expect(said(reading, 'distributed').distributed).toBe(
      '{"nodes":1,"processesPerNode":3,"strategy":"dp","offload":[]} <- 3 visible GPUs',
    );
  });

  it.each([
    ['one GPU in sight', 'python tune.py --do_train', 1],
    ['the command shows one of three', 'env CUDA_VISIBLE_DEVICES=2 python tune.py --do_train', 3],
    ['training on the CPU', 'python tune.py --do_train --use_cpu', 3],
  ])('do not with %s', (_, line, gpus) => {
    expect(read(line, { gpus }).spec.distributed?.value).toMatchObject({ processesPerNode: 1, strategy: 'none' });
  });
});

describe('method, dtype and length of a script with flags of its own', () => {
  it.each([
    ['--use_peft --lora_r 24 --lora_alpha 48', '"lora" <- argv[3]'],
    ['--lora_rank 24', '"lora" <- argv[4]'],
    ['--use_lora true --lora_r 24 --load_in_4bit true', '"qlora" <- argv[8]'],
    ['--use_lora false --lora_r 24', '"full" <- argv[4]'],
    ['--seed 1', '"full" <- default transformers 5.17'],
  ])('reads the method of %s', (flags, expected) => {
    expect(said(read(`python tune.py --do_train ${flags}`), 'method').method).toBe(expected);
  });

  it('does not guess when the text works with PEFT', () => {
    const files = { 'tune.py': `${parserScript}\nfrom peft import LoraConfig\n` };
    const reading = read('python tune.py --do_train', { files });
    expect(said(reading, 'method').method).toBe('null <- tune.py');
    expect(reading.diagnostics.map((each) => each.code)).toEqual(['unknown-method']);
  });

  it('takes the dtype that the one from_pretrained call names', () => {
    const text = `${parserScript}\nmodel = AutoModelForCausalLM.from_pretrained(n, torch_dtype=torch.bfloat16)\n`;
    const reading = read('python tune.py --do_train', { files: { 'tune.py': text } });
    expect(said(reading, 'dtype', 'objective')).toEqual({
      dtype: '"bf16" <- tune.py:5',
      objective: '"clm" <- tune.py',
    });
  });

  it('leaves a dtype that is commented out, or said twice differently, to the checkpoint', () => {
    const twice = `${parserScript}\na(dtype=torch.float16)\nb(dtype=torch.float32)\n`;
    const comment = `${parserScript}\n# a(dtype=torch.float16)\n`;
    for (const text of [twice, comment]) {
      const reading = read('python tune.py --do_train', { files: { 'tune.py': text } });
      expect(said(reading, 'dtype').dtype).toBe('"auto" <- default transformers 5.17');
    }
  });

  it('adds prompt and answer where they are given apart', () => {
    const reading = read('python tune.py --do_train --max_source_length 300 --max_target_length 90');
    expect(said(reading, 'maxLength').maxLength).toBe('390 <- argv[4]');
  });

  it('gives encoder and decoder a length each', () => {
    const reading = read('python run_summarization.py --do_train --max_source_length 300 --max_target_length 90');
    expect(said(reading, 'maxLength', 'maxTargetLength', 'attentionMask')).toMatchObject({
      maxLength: '300 <- argv[4]',
      maxTargetLength: '90 <- argv[6]',
      attentionMask: expect.stringContaining('true'),
    });
  });

  it('knows no length where no flag says one', () => {
    expect(read('python tune.py --do_train').spec.maxLength?.value).toBeNull();
  });

  it.each([
    ['the tokenizer', 640, 640],
    ['1024 where the tokenizer has no limit', 1e30, 1024],
  ])('takes the block of run_clm.py from %s', (_, limit, expected) => {
    const files = {
      '/models/otter/tokenizer_config.json': `{"model_max_length": ${limit}}`,
      '/models/otter/config.json': '{"max_position_embeddings": 4096}',
    };
    const reading = read('python run_clm.py --model_name_or_path /models/otter --do_train', { files });
    expect(reading.spec.maxLength?.value).toBe(expected);
    expect(reading.spec.objective?.value).toBe('clm');
  });
});

describe('engines in the flags', () => {
  it('reads the old fsdp words and the config beside them', () => {
    const reading = read(
      `torchrun --nproc-per-node 4 tune.py --do_train --fsdp 'full_shard auto_wrap offload' --fsdp_config '{"version": 1}'`,
    );
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['torchrun', 'hf-trainer', 'fsdp']);
    expect(reading.spec.distributed?.value).toEqual({
      nodes: 1,
      processesPerNode: 4,
      strategy: 'fsdp1',
      offload: ['optimizer', 'parameters'],
    });
  });

  it.each([
    ['each micro batch', '{"gradient_accumulation_kwargs": {"sync_each_batch": true}}', true],
    ['the last one only, said', '{"gradient_accumulation_kwargs": {"sync_each_batch": false}}', false],
    ['the last one only', '{"split_batches": true}', undefined],
    ['what a file says, which is not opened', 'acc.json', undefined],
  ])('reduces gradients after %s', (_, config, expected) => {
    const reading = read(`torchrun --nproc-per-node 2 tune.py --do_train --accelerator_config '${config}'`);
    expect(reading.spec.syncsEachMicroBatch?.value).toBe(expected);
  });

  it('says that a DeepSpeed file is missing', () => {
    expect(problemsOf('python tune.py --do_train --deepspeed zero9.json').map((each) => each.location)).toEqual([
      'zero9.json',
    ]);
  });
});

describe('resuming', () => {
  it('works where the script hands the checkpoint on', () => {
    const files = { 'tune.py': `${parserScript}\ntrainer.train(resume_from_checkpoint=args.resume_from_checkpoint)\n` };
    expect(read('python tune.py --do_train', { files }).resume).toEqual({
      kind: 'supported',
      how: '--resume_from_checkpoint DIR',
    });
  });

  it.each([
    ['whose text does not', { 'tune.py': parserScript }, /does not hand/],
    ['that cannot be read', {}, /cannot be read/],
  ])('does not work for a script %s', (_, files, reason) => {
    const { resume } = read('python tune.py --do_train', { files });
    expect(resume).toMatchObject({ kind: 'unsupported', reason: expect.stringMatching(reason) });
  });
});
