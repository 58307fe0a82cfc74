import { describe, expect, it } from 'vitest';
import type { FoundVersions } from '../../src/dialects/index.ts';
import { readLaunch } from '../../src/dialects/index.ts';
import { isSince } from '../../src/dialects/versions.ts';
import { said } from './phrase-book.ts';
import { contextOf } from './reading.ts';

const found = (versions: Record<string, string>): FoundVersions =>
  Object.fromEntries(Object.entries(versions).map(([name, version]) => [name, { version, place: 'uv.lock:1' }]));

function read(line: string, versions: Record<string, string>) {
  const reading = readLaunch(line.split(' '), { ...contextOf({ gpus: 1 }), versions: found(versions) });
  if (!reading.ok) throw new Error(JSON.stringify(reading.error));
  return reading.value;
}

describe('what an absent key means in a version', () => {
  const TRL = 'trl sft --model_name_or_path a/b --output_dir o';
  const HF = 'python t.py --model_name_or_path a/b --output_dir o --gradient_checkpointing';
  it.each<[versions: Record<string, string>, name: 'dtype' | 'lossImpl' | 'mixedPrecision', expected: string]>([
    [{ trl: '1.13.0' }, 'dtype', '"fp32" <- default trl 1.13.0'],
    [{ trl: '0.26.2', transformers: '4.57.1' }, 'dtype', '"fp32" <- default trl 0.26.2'],
    [{ trl: '0.26.2', transformers: '5.0.0' }, 'dtype', '"auto" <- default trl 0.26.2'],
    [{ trl: '1.6.0' }, 'lossImpl', '"full" <- default trl 1.6.0'],
    [{ trl: '1.7.0' }, 'lossImpl', '"chunked" <- default trl 1.7.0'],
    [{ trl: '0.18.1', transformers: '4.52' }, 'mixedPrecision', '"no" <- default trl 0.18.1'],
    [{ trl: '0.19.0', transformers: '4.52' }, 'mixedPrecision', '"bf16" <- default trl 0.19.0'],
  ])('TRL, %j: %s', (versions, name, expected) => expect(said(read(TRL, versions), name)[name]).toBe(expected));

  it('TRL switches checkpointing on since 0.22', () => {
    const on = (trl: string) => read(TRL, { trl, transformers: '4.56' }).spec.gradientCheckpointing?.value?.enabled;
    expect([on('0.21.0'), on('0.22.0'), on('0.23.1')]).toEqual([false, true, true]);
  });

  it.each([
    ['4.44.0', true],
    ['4.57.1', false],
    ['5.2.0', true],
  ])('transformers %s heeds sync_each_batch: %s', (version, expected) => {
    const config = '{"gradient_accumulation_kwargs":{"sync_each_batch":true}}';
    const { spec } = read(`${HF} --accelerator_config ${config}`, { transformers: version });
    expect(spec.syncsEachMicroBatch?.value).toBe(expected);
  });

  it.each<[versions: Record<string, string>, dtype: string, optim: string, reentrant: boolean]>([
    [{ transformers: '4.53.0' }, 'fp32', 'adamw_torch', true],
    [{ transformers: '4.57.1' }, 'fp32', 'adamw_torch_fused', true],
    [{ transformers: '4.57.1', torch: '2.7.0+cu128' }, 'fp32', 'adamw_torch', true],
    [{ transformers: '5.2.0' }, 'auto', 'adamw_torch_fused', false],
  ])('transformers, %j', (versions, dtype, optim, useReentrant) => {
    const { spec } = read(HF, versions);
    expect(spec.dtype?.value).toBe(dtype);
    expect(spec.optim?.value).toBe(optim);
    expect(spec.gradientCheckpointing?.value).toMatchObject({ enabled: true, useReentrant });
  });

  it('FSDP is version 1 before transformers 5', () => {
    const strategy = (transformers: string) =>
      read('torchrun --nproc-per-node 2 t.py --output_dir o --do_train --fsdp full_shard', { transformers }).parallelism
        ?.strategy;
    expect([strategy('4.57.1'), strategy('5.1.0')]).toEqual(['fsdp1', 'fsdp2']);
  });
});

describe('the order of versions', () => {
  it.each([
    ['4.57.1', '4.57', true],
    ['4.9', '4.57', false],
    ['5', '4.57', true],
    ['0.22.0.dev0', '0.22', true],
    ['2.8.0+cu128', '2.8', true],
    ['1.0rc1', '1.0', true],
    ['main', '9.9', true],
  ])('%s is since %s: %s', (version, since, expected) => expect(isSince(version, since)).toBe(expected));
});
