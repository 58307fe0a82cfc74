import { describe, expect, it } from 'vitest';
import { readLaunch, readLaunchPartly } from '../../src/dialects/index.ts';
import { formatOrigin } from '../../src/spec/index.ts';
import { problemsOf, read, rewrite, said, words } from './phrase-book.ts';
import { contextOf, type Machine } from './reading.ts';

const partly = (line: string, machine: Machine = {}) => readLaunchPartly(words(line), contextOf(machine));

describe('a stack', () => {
  it('folds wrappers, launcher, trainer and engine into one', () => {
    const files = { 'acc.yaml': 'distributed_type: DEEPSPEED\nnum_processes: 4\ndeepspeed_config:\n  zero_stage: 3\n' };
    const reading = read(
      'CUDA_VISIBLE_DEVICES=0,1,2,3 nohup accelerate launch --config_file acc.yaml trl/scripts/sft.py --max_length 300',
      { files, gpus: 8 },
    );
    expect(reading.stack).toEqual([
      { dialect: 'accelerate', kind: 'launcher' },
      { dialect: 'trl', kind: 'trainer' },
      { dialect: 'accelerate-config', kind: 'engine' },
      { dialect: 'deepspeed-config', kind: 'engine' },
    ]);
    expect(reading.wrappers).toEqual(['nohup']);
    expect(reading.env).toEqual({ CUDA_VISIBLE_DEVICES: '0,1,2,3' });
    expect(reading.programIndex).toBe(2);
    expect(reading.files).toEqual(['acc.yaml']);
    expect(reading.spec.distributed?.value).toEqual({
      nodes: 1,
      processesPerNode: 4,
      strategy: 'zero3',
      offload: [],
    });
  });

  it('lets the checkpointing of FSDP hold where the trainer has none', () => {
    const files = {
      'acc.yaml':
        'distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_version: 2\n  fsdp_activation_checkpointing: true\n',
    };
    const line = 'accelerate launch --config_file acc.yaml tune.py --do_train';
    const { spec } = read(line, { files, gpus: 2 });
    expect(spec.gradientCheckpointing?.value?.enabled).toBe(true);
    expect(formatOrigin(spec.gradientCheckpointing!.origin)).toBe('acc.yaml:5');
    expect(
      formatOrigin(read(`${line} --gradient_checkpointing`, { files, gpus: 2 }).spec.gradientCheckpointing!.origin),
    ).toMatch(/^argv/);
  });

  it('takes autocast from the launcher only where the trainer says nothing', () => {
    const line = 'accelerate launch --mixed_precision fp16 --num_processes 1 tune.py --do_train';
    expect(said(read(line, { gpus: 1 }), 'mixedPrecision').mixedPrecision).toBe('"fp16" <- argv[3]');
    expect(said(read(`${line} --bf16`, { gpus: 1 }), 'mixedPrecision').mixedPrecision).toBe('"bf16" <- argv[8]');
  });

  it('writes into each place that a setting came from, in one go', () => {
    const files = { 'c.yaml': 'per_device_train_batch_size: 8\ngradient_accumulation_steps: 1\n' };
    const reading = read('PYTORCH_CUDA_ALLOC_CONF=a:1 trl sft --config c.yaml --max_length=900', { files, gpus: 1 });
    const fitted = rewrite(reading, {
      perDeviceTrainBatchSize: 4,
      gradientAccumulationSteps: 2,
      maxLength: 450,
      allocatorConf: 'expandable_segments:True',
    });
    expect(fitted.argv).toEqual(
      words('PYTORCH_CUDA_ALLOC_CONF=a:1,expandable_segments:True trl sft --config /copies/c.yaml --max_length=450'),
    );
    expect(fitted.files.map((file) => file.text)).toEqual([
      'per_device_train_batch_size: 4\ngradient_accumulation_steps: 2\n',
    ]);
  });

  it('tells every setting that cannot be written', () => {
    const reading = read('python tune.py --do_train');
    expect(() => rewrite(reading, { method: 'lora', lossImpl: 'chunked' })).toThrow(/method: .*loss_impl: /s);
  });
});

describe('a command that nobody knows', () => {
  it.each([
    ['./train --per-device-batch 4', 'unknown-trainer', 0],
    ['python own.py --bs 3', 'unknown-trainer', 0],
    ['nohup python own.py', 'unknown-trainer', 1],
    ['nohup make train', 'unread-command', 1],
  ])('%s is read as far as it goes', (line, code, program) => {
    const reading = read(line, { gpus: 1 });
    expect(reading.diagnostics.map((each) => `${each.severity} ${each.code}`)).toContain(`note ${code}`);
    expect(reading.programIndex).toBe(program);
    expect(reading.resume.kind).toBe('unsupported');
    expect(reading.writable('perDeviceTrainBatchSize', 1)).not.toBe(true);
    expect(rewrite(reading, {}).argv).toEqual(words(line));
  });

  it('may be no command at all', () => {
    const reading = readLaunch([], contextOf());
    expect(reading.ok && reading.value.diagnostics.map((each) => each.code)).toEqual(['empty-command']);
  });
});

describe('a launch with a file that cannot be read', () => {
  it('still says what the command line says, and that the rest is unknown', () => {
    const line = 'trl sft --config none.yaml --max_length 300 --num_processes 2';
    expect(problemsOf(line, { gpus: 2 }).map((each) => each.location)).toEqual(['none.yaml']);
    const { reading, errors } = partly(line, { gpus: 2 });
    expect(errors.map((each) => each.location)).toEqual(['none.yaml']);
    expect(said(reading!, 'maxLength', 'gradientAccumulationSteps', 'dtype')).toEqual({
      maxLength: '300 <- argv[5]',
      gradientAccumulationSteps: 'null <- none.yaml:1',
      dtype: 'null <- none.yaml:1',
    });
    expect(reading!.files).toEqual(['none.yaml']);
    expect(reading!.spec.distributed?.value?.processesPerNode).toBe(2);
  });

  it('goes on behind a launcher whose file is broken', () => {
    const files = { 'acc.yaml': 'num_processes: [\n' };
    const { reading, errors } = partly(
      'accelerate launch --config_file acc.yaml --num_processes 3 tune.py --per_device_train_batch_size 5',
      { files, gpus: 3 },
    );
    expect(errors).toHaveLength(1);
    expect(reading!.stack.map((entry) => entry.dialect)).toEqual(['accelerate', 'hf-trainer', 'accelerate-config']);
    expect(reading!.spec.perDeviceTrainBatchSize?.value).toBe(5);
    expect(reading!.spec.distributed?.value?.processesPerNode).toBe(3);
  });

  it('keeps the defaults of a trainer whose engine file is missing', () => {
    const { reading, errors } = partly('python tune.py --do_train --deepspeed none.json', { gpus: 1 });
    expect(errors.map((each) => each.location)).toEqual(['none.json']);
    expect(said(reading!, 'gradientAccumulationSteps').gradientAccumulationSteps).toBe(
      '1 <- default transformers 5.17',
    );
  });

  it('has no errors where all is well', () => {
    expect(partly('trl sft --seed 1', { gpus: 1 }).errors).toEqual([]);
  });
});
