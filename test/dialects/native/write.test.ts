import { describe, expect, it } from 'vitest';
import { type LaunchReading, readNativeConfig } from '../../../src/dialects/index.ts';
import type { SettingName } from '../../../src/spec/index.ts';
import { rewrite, words } from '../phrase-book.ts';
import { contextOf } from '../reading.ts';

function reading(text: string, files: Record<string, string> = {}): LaunchReading {
  const read = readNativeConfig('snug.yaml', contextOf({ files: { 'snug.yaml': text, ...files } }));
  if (!read.ok) throw new Error(JSON.stringify(read.error, null, 1));
  return read.value.reading;
}

const base = 'per_device_train_batch_size: 8\ngradient_accumulation_steps: 2\nmax_length: 700\n';

describe('placeholders', () => {
  it('are filled with what holds when nothing changes', () => {
    const fitted = rewrite(
      reading(
        `command: >-\n  python go.py --bs {per_device_train_batch_size} --x '{"a": 1}' --len={max_length}\n${base}`,
      ),
      {},
    );
    expect(fitted.argv).toEqual(['python', 'go.py', '--bs', '8', '--x', '{"a": 1}', '--len=700']);
    expect(fitted.files).toEqual([]);
  });

  it.each<[string, Partial<Record<SettingName, unknown>>, string]>([
    [
      'go --bs {per_device_train_batch_size} --acc {gradient_accumulation_steps}',
      { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 8 },
      'go --bs 2 --acc 8',
    ],
    [
      'go b={per_device_train_batch_size},a={gradient_accumulation_steps}',
      { perDeviceTrainBatchSize: 4 },
      'go b=4,a=2',
    ],
    [
      'go --ckpt {gradient_checkpointing} --n {gradient_checkpointing.every_n_layers}',
      { gradientCheckpointing: { enabled: true, useReentrant: false, everyNLayers: 3, offload: false } },
      'go --ckpt true --n 3',
    ],
    ['go --opt {optim}', { optim: 'adamw_8bit' }, 'go --opt adamw_8bit'],
    [
      'go --bits {quantization.bits}',
      {
        quantization: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: true },
      },
      'go --bits 4',
    ],
  ])('%s', (command, settings, expected) => {
    const native = reading(`command: ${command}\n${base}`);
    for (const [name, to] of Object.entries(settings)) {
      expect(native.writable(name as SettingName, to)).toBe(true);
    }
    expect(rewrite(native, settings).argv).toEqual(words(expected));
  });

  it.each<[SettingName, unknown, string]>([
    ['perDeviceTrainBatchSize', 2, '{per_device_train_batch_size}'],
    ['lossImpl', 'fused', '{loss_impl}'],
    [
      'gradientCheckpointing',
      { enabled: true, useReentrant: false, everyNLayers: 1, offload: false },
      '{gradient_checkpointing}',
    ],
    [
      'gradientCheckpointing',
      { enabled: false, useReentrant: false, everyNLayers: 4, offload: false },
      '{gradient_checkpointing.every_n_layers}',
    ],
  ])('are named when %s has none', (setting, to, missing) => {
    const native = reading(`command: go --len {max_length}\n${base}`);
    expect(native.writable(setting, to)).toContain(`no ${missing}`);
  });
});

describe('going on', () => {
  it('is told by resume:', () => {
    const native = reading(`command: go --a 1\nresume: --from {checkpoint} --strict\n${base}`);
    expect(native.resume).toEqual({ kind: 'supported', how: '--from {checkpoint} --strict' });
    expect(rewrite(native, {}, { resumeFrom: '/r/checkpoint 7' }).argv).toEqual([
      'go',
      '--a',
      '1',
      '--from',
      '/r/checkpoint 7',
      '--strict',
    ]);
  });

  it('is left to a trainer that knows how', () => {
    const script = 'from transformers import HfArgumentParser, TrainingArguments\nt.train(resume_from_checkpoint=r)\n';
    const native = reading(`command: python go.py --do_train\n${base}`, { 'go.py': script });
    expect(native.resume.kind).toBe('supported');
    expect(rewrite(native, {}, { resumeFrom: '/r/c' }).argv).toEqual(
      words('python go.py --do_train --resume_from_checkpoint /r/c'),
    );
  });

  it('is not possible otherwise', () => {
    const native = reading(`command: go\n${base}`);
    expect(native.resume).toEqual({ kind: 'unsupported', reason: 'the config has no resume: for its trainer' });
    expect(() => rewrite(native, {}, { resumeFrom: 'c' })).toThrow();
  });
});

it('leaves the allocator setting to the environment', () => {
  const fitted = rewrite(reading(`command: go\n${base}`), { allocatorConf: 'expandable_segments:True' });
  expect(fitted).toMatchObject({ argv: ['go'], env: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' } });
});
