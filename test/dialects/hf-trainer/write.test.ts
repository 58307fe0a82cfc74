import { describe, expect, it } from 'vitest';
import type { SettingName } from '../../../src/spec/index.ts';
import { read, readBack, rewrite, words } from '../phrase-book.ts';

const parserScript = `
from transformers import HfArgumentParser, TrainingArguments
args, = HfArgumentParser(TrainingArguments).parse_args_into_dataclasses()
trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
`;
const files = { 'tune.py': parserScript };

/** Input line, settings, output line. */
const PHRASES: readonly (readonly [string, string, Partial<Record<SettingName, unknown>>, string])[] = [
  [
    'a value keeps its place and its style',
    'python tune.py --per_device_train_batch_size 8 --seed 3',
    { perDeviceTrainBatchSize: 2 },
    'python tune.py --per_device_train_batch_size 2 --seed 3',
  ],
  [
    'the = stays',
    'python tune.py --per-device-train-batch-size=8 --seed=3',
    { perDeviceTrainBatchSize: 2 },
    'python tune.py --per-device-train-batch-size=2 --seed=3',
  ],
  [
    'an abbreviation and an old name stay',
    'python tune.py --per_gpu_train_batch_size 8 --gradient_acc 2',
    { perDeviceTrainBatchSize: 4, gradientAccumulationSteps: 4 },
    'python tune.py --per_gpu_train_batch_size 4 --gradient_acc 4',
  ],
  [
    'of a flag given twice the one that holds changes',
    'python tune.py --optim sgd --optim adafactor --do_train',
    { optim: 'adamw_8bit' },
    'python tune.py --optim sgd --optim adamw_8bit --do_train',
  ],
  [
    'what is not there goes behind the last flag',
    'python tune.py --do_train --seed 3',
    { perDeviceEvalBatchSize: 2 },
    'python tune.py --do_train --seed 3 --per_device_eval_batch_size 2',
  ],
  [
    'a script without flags gets them behind its name',
    'python tune.py',
    { gradientAccumulationSteps: 4 },
    'python tune.py --gradient_accumulation_steps 4',
  ],
  [
    'reducing after every micro batch goes two levels down, beside what is there',
    `python tune.py --accelerator_config '{"split_batches": true}' --do_train`,
    { syncsEachMicroBatch: true },
    `python tune.py --accelerator_config '{"split_batches":true,"gradient_accumulation_kwargs":{"sync_each_batch":true}}' --do_train`,
  ],
  [
    'a bare switch becomes one token',
    'python tune.py --bf16 --do_train',
    { mixedPrecision: 'no' },
    'python tune.py --bf16=false --do_train',
  ],
  [
    'a switch with a value keeps its capital letter',
    'python tune.py --bf16 True --do_train',
    { mixedPrecision: 'fp16' },
    'python tune.py --bf16 False --do_train --fp16 true',
  ],
  [
    'a switch that is written never stands bare',
    'python tune.py --do_train',
    { gradientCheckpointing: { enabled: true, useReentrant: false, everyNLayers: 1, offload: false } },
    'python tune.py --do_train --gradient_checkpointing true',
  ],
  [
    'the fused loss is Liger',
    'python tune.py --do_train',
    { lossImpl: 'fused' },
    'python tune.py --do_train --use_liger_kernel true',
  ],
  [
    'a negated switch is named again',
    'python tune.py --do_train --no_dataloader_pin_memory',
    { dataloaderPinMemory: true },
    'python tune.py --do_train --dataloader_pin_memory=true',
  ],
  [
    'a module is a script, too',
    'python -m acme.tune --num_train_epochs 1',
    { perDeviceTrainBatchSize: 2 },
    'python -m acme.tune --num_train_epochs 1 --per_device_train_batch_size 2',
  ],
  [
    'wrappers and the launcher stay as they are',
    'nohup env A=1 python -u tune.py --per_device_train_batch_size 8',
    { perDeviceTrainBatchSize: 1 },
    'nohup env A=1 python -u tune.py --per_device_train_batch_size 1',
  ],
];

describe('a rewrite', () => {
  it.each(PHRASES)('%s', (_, line, settings, expected) => {
    const reading = read(line, { files });
    for (const [name, to] of Object.entries(settings)) {
      expect(reading.writable(name as SettingName, to)).toBe(true);
    }
    const fitted = rewrite(reading, settings);
    expect(fitted.argv).toEqual(words(expected));
    expect(fitted.env).toEqual({});
    expect(fitted.files).toEqual([]);
    const again = readBack(fitted, { files });
    for (const [name, to] of Object.entries(settings)) {
      expect(again.spec[name as SettingName]?.value).toEqual(to);
    }
  });

  it('adds to kwargs that are there', () => {
    const reading = read(
      `python tune.py --do_train --gradient_checkpointing --gradient_checkpointing_kwargs '{"use_reentrant":true}'`,
      { files },
    );
    const to = { enabled: true, useReentrant: true, everyNLayers: 1, offload: true };
    expect(rewrite(reading, { gradientCheckpointing: to }).argv.at(-1)).toBe('{"use_reentrant":true,"offload":true}');
  });

  it('leaves alone what holds already', () => {
    const line = 'python tune.py --bf16 --optim adafactor --do_train';
    const fitted = rewrite(read(line, { files }), { mixedPrecision: 'bf16', optim: 'adafactor', lossImpl: 'full' });
    expect(fitted.argv).toEqual(words(line));
  });

  it('goes into the JSON file that the script is given, and only there', () => {
    const json = '{\n    "output_dir": "o",\n    "per_device_train_batch_size": 8\n}\n';
    const machine = { files: { ...files, 'conf/args.json': json } };
    const fitted = rewrite(read('python tune.py conf/args.json', machine), {
      perDeviceTrainBatchSize: 2,
      gradientAccumulationSteps: 4,
    });
    expect(fitted.argv).toEqual(['python', 'tune.py', '/copies/args.json']);
    expect(fitted.files).toEqual([
      {
        source: 'conf/args.json',
        copy: '/copies/args.json',
        before: json,
        text: '{\n    "output_dir": "o",\n    "per_device_train_batch_size": 2,\n    "gradient_accumulation_steps": 4\n}\n',
      },
    ]);
    expect(readBack(fitted, machine).spec.gradientAccumulationSteps?.value).toBe(4);
  });

  it('beats tune.args with a flag', () => {
    const machine = { files: { ...files, 'tune.args': '--per_device_train_batch_size 8' } };
    const fitted = rewrite(read('python tune.py --do_train', machine), { perDeviceTrainBatchSize: 2 });
    expect(fitted.argv).toEqual(words('python tune.py --do_train --per_device_train_batch_size 2'));
    expect(readBack(fitted, machine).spec.perDeviceTrainBatchSize?.value).toBe(2);
  });

  it('resumes, or starts over elsewhere', () => {
    const reading = read('python tune.py --do_train --output_dir o', { files });
    expect(rewrite(reading, {}, { resumeFrom: '/r/checkpoint-20' }).argv.slice(2)).toEqual(
      words('--do_train --output_dir o --resume_from_checkpoint /r/checkpoint-20'),
    );
    expect(rewrite(reading, {}, { outputDir: '/r/again' }).argv.slice(2)).toEqual(
      words('--do_train --output_dir /r/again'),
    );
  });
});

describe('the allocator setting', () => {
  const line = 'python tune.py --do_train';
  const setting = 'expandable_segments:True';

  it.each([
    ['nothing is set', {}, { PYTORCH_CUDA_ALLOC_CONF: setting }],
    [
      'something else is set',
      { PYTORCH_CUDA_ALLOC_CONF: 'max_split_size_mb:96' },
      { PYTORCH_CUDA_ALLOC_CONF: `max_split_size_mb:96,${setting}` },
    ],
    [
      'the same key says otherwise',
      { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:False,max_split_size_mb:96' },
      { PYTORCH_CUDA_ALLOC_CONF: `max_split_size_mb:96,${setting}` },
    ],
    [
      'the newer name is set',
      { PYTORCH_ALLOC_CONF: 'max_split_size_mb:96' },
      {
        PYTORCH_ALLOC_CONF: `max_split_size_mb:96,${setting}`,
        PYTORCH_CUDA_ALLOC_CONF: `max_split_size_mb:96,${setting}`,
      },
    ],
    ['it holds already', { PYTORCH_CUDA_ALLOC_CONF: `a:1,${setting}` }, {}],
  ])('joins what is there when %s', (_, environment, expected) => {
    const machine = { files, environment };
    const fitted = rewrite(read(line, machine), { allocatorConf: setting });
    expect(fitted.env).toEqual(expected);
    expect(readBack(fitted, machine).spec.allocatorConf?.value).toContain(setting);
  });

  it('is written where the command itself sets it', () => {
    const reading = read('PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:96 python tune.py --do_train', { files });
    const fitted = rewrite(reading, { allocatorConf: setting });
    expect(fitted.argv[0]).toBe(`PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:96,${setting}`);
    expect(fitted.env).toEqual({});
  });
});

describe('what cannot be told', () => {
  const ownParser = {
    'tune.py': 'import argparse\np = argparse.ArgumentParser()\np.add_argument("--num_train_epochs")\n',
  };

  it.each([
    ['a flag that a parser of its own does not have', ownParser, 'gradientAccumulationSteps', 4, /has no --gradient/],
    ['another training method', files, 'method', 'lora', /script decides/],
    ['attention without a flag for it', files, 'attnImplementation', 'sdpa', /no flag for the attention/],
    ['a chunked loss', files, 'lossImpl', 'chunked', /no chunked loss/],
    [
      'sharding',
      files,
      'distributed',
      { nodes: 1, processesPerNode: 1, strategy: 'zero3', offload: [] },
      /distributed/,
    ],
  ] as const)('is %s', (_, scripts, setting, to, reason) => {
    const reading = read('python tune.py --num_train_epochs 1', { files: scripts });
    expect(reading.writable(setting, to)).toMatch(reason);
  });

  it('is a checkpoint where the script does not hand it on', () => {
    const reading = read('python tune.py --do_train', { files: { 'tune.py': 'x' } });
    expect(() => rewrite(reading, {}, { resumeFrom: 'c' })).toThrow(/resume_from_checkpoint/);
  });

  it('may still be told by flags that the script names itself', () => {
    const text = `${parserScript}\nclass M:\n    attn_implementation: str = None\n`;
    const reading = read('python tune.py --do_train', { files: { 'tune.py': text } });
    expect(rewrite(reading, { attnImplementation: 'sdpa' }).argv.slice(3)).toEqual(words('--attn_implementation sdpa'));
  });
});
