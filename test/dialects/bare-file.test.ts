import { describe, expect, it } from 'vitest';
import { readBareFile, readBareFilePartly } from '../../src/dialects/index.ts';
import { said } from './phrase-book.ts';
import { contextOf } from './reading.ts';

/** `command: …` as snug would start it, or the code and help of what it says. */
function answer(path: string, text: string): string {
  const read = readBareFile(path, contextOf({ files: { [path]: text }, gpus: 1 }));
  if (read.ok) return read.value.reading.command.argv.join(' ');
  return read.error.map(({ code, help }) => `${code}: ${help}`).join('\n');
}

const native = 'model: acme/otter-2b\nper_device_train_batch_size: 3\nmax_length: 700\n';

describe('a file that is given alone', () => {
  it.each<[string, string, string, string]>([
    ['a native config', 'runs/otter.yaml', `${native}command: python go.py\n`, 'python go.py'],
    ['a native config without a command', 'runs/otter.yaml', native, ''],
    [
      'a config that only SFT takes',
      'a b.yaml',
      'model_name_or_path: acme/otter-2b\npacking: true\noutput_dir: out\n',
      'trl sft --config a b.yaml',
    ],
    ['a config of axolotl', 'ax.yml', 'base_model: acme/otter-2b\nadapter:\nsequence_len: 9\n', 'axolotl train ax.yml'],
    [
      'a config of LLaMA-Factory',
      'lf.json',
      '{"model_name_or_path": "acme/otter-2b", "stage": "sft", "template": "default", "cutoff_len": 9}',
      'llamafactory-cli train lf.json',
    ],
  ])('%s is started by its command', (_, path, text, command) => {
    expect(answer(path, text)).toBe(command);
  });

  it('says which command it found', () => {
    const files = { 'p.yaml': 'model_name_or_path: acme/otter-2b\npacking: true\noutput_dir: out\n' };
    const read = readBareFile('p.yaml', contextOf({ files, gpus: 1 }));
    expect(read.ok && read.value.reading.diagnostics[0]).toMatchObject({
      code: 'bare-config',
      severity: 'note',
      message: 'p.yaml is a config of trl, started by: trl sft --config p.yaml',
    });
  });

  it.each<[string, string, string, string]>([
    [
      'several commands of TRL could start',
      'my-dpo.yaml',
      'model_name_or_path: acme/otter-2b\nbeta: 0.2\noutput_dir: out\n',
      'incomplete-launch: snug run -- trl dpo --config my-dpo.yaml, or snug run -- trl grpo --config my-dpo.yaml, or snug run -- trl kto --config my-dpo.yaml',
    ],
    [
      'a script of its own starts',
      'r.yaml',
      'model_name_or_path: acme/otter-2b\ndataset_mixture: {}\nuse_peft: true\npacking: true\n',
      'incomplete-launch: snug run -- accelerate launch scripts/sft.py --config r.yaml',
    ],
    [
      'belongs to accelerate',
      'acc.yaml',
      'compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\n',
      'incomplete-launch: snug run -- accelerate launch --config_file acc.yaml train.py …',
    ],
    [
      'belongs to DeepSpeed',
      'ds.json',
      '{"zero_optimization": {"stage": 2}}',
      'incomplete-launch: snug run -- deepspeed train.py --deepspeed ds.json …',
    ],
    [
      'belongs to DeepSpeed',
      'ds.json',
      '{"train_batch_size": 8, "zero_optimization": {}, "bf16": {"enabled": true}, "gradient_accumulation_steps": 2}',
      'incomplete-launch: snug run -- deepspeed train.py --deepspeed ds.json …',
    ],
    [
      'belongs to a Trainer script',
      'args.json',
      '{"output_dir": "o", "learning_rate": 1e-4}',
      'incomplete-launch: snug run -- python train.py args.json',
    ],
    [
      'nobody knows',
      'playbook.yaml',
      'hosts: all\ntasks: []\n',
      'unknown-config: give the command that uses it: snug run -- COMMAND playbook.yaml',
    ],
  ])('that %s is answered with the command to type', (_, path, text, expected) => {
    expect(answer(path, text)).toBe(expected);
  });

  it('names what it looked for', () => {
    const read = readBareFile('x.yml', contextOf({ files: { 'x.yml': 'colour: red\n' } }));
    const notes = read.ok ? [] : read.error[0]!.notes!;
    expect(notes[0]).toBe('its keys begin with colour');
    expect(notes[1]).toMatch(/snug: command, or model.*TRL: model_name_or_path/);
  });

  it('takes a slip of the pen in a native config for what it is', () => {
    expect(answer('o.yaml', `${native}max_lenght: 3\n`)).toBe('unknown-key: did you mean max_length');
  });

  it('says what is wrong with a file that cannot be parsed', () => {
    expect(answer('o.json', '{"a": }')).toMatch(/^json-syntax/);
    expect(answer('o.yaml', 'a: [1\n')).toMatch(/^yaml-/);
  });
});

describe('a file that does not say what starts it', () => {
  const partly = (path: string, text: string) => readBareFilePartly(path, contextOf({ files: { [path]: text } }))!;

  it('still says what it holds: an engine', () => {
    const reading = partly(
      'ds.json',
      '{"train_micro_batch_size_per_gpu": 3,\n"fp16": {"enabled": true}, "zero_optimization": {"stage": 3}}',
    );
    expect(reading.stack).toEqual([{ dialect: 'deepspeed-config', kind: 'engine' }]);
    expect(reading.parallelism).toMatchObject({ processesPerNode: null, strategy: 'zero3' });
    expect(said(reading, 'perDeviceTrainBatchSize', 'mixedPrecision', 'optim')).toEqual({
      perDeviceTrainBatchSize: '3 <- ds.json:1',
      mixedPrecision: '"fp16" <- ds.json:2',
      optim: 'absent',
    });
  });

  it('still says what it holds: a config of accelerate, one of TRL', () => {
    const file =
      'compute_environment: LOCAL_MACHINE\ndistributed_type: FSDP\nnum_processes: 4\nmixed_precision: bf16\n';
    expect(partly('a.yaml', file)).toMatchObject({
      stack: [{ dialect: 'accelerate-config' }, { dialect: 'fsdp' }],
      parallelism: { nodes: 1, processesPerNode: 4, strategy: 'fsdp1' },
    });
    const trl = partly('t.yaml', 'model_name_or_path: a/b\nmax_length: 512\noutput_dir: o\nlearning_rate: 1.0e-5\n');
    expect(trl.stack).toEqual([{ dialect: 'trl', kind: 'trainer', via: 'cli' }]);
    expect(said(trl, 'maxLength').maxLength).toBe('512 <- t.yaml:2');
  });
});
