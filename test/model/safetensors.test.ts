import { describe, expect, it } from 'vitest';
import { measureCheckpoint, readSafetensorsHeader } from '../../src/model/index.ts';
import { fakePorts } from '../support/fake-ports.ts';

type Tensors = Record<string, { dtype: string; shape: number[]; bytes: number }>;

/** A whole safetensors file: length, header, zeros. */
function safetensors(tensors: Tensors, extra: Record<string, unknown> = {}): Uint8Array {
  let end = 0;
  const header: Record<string, unknown> = { ...extra };
  for (const [name, { dtype, shape, bytes }] of Object.entries(tensors)) {
    header[name] = { dtype, shape, data_offsets: [end, end + bytes] };
    end += bytes;
  }
  return framed(new TextEncoder().encode(JSON.stringify(header)), end);
}

function framed(header: Uint8Array, dataBytes = 0, length = BigInt(header.byteLength)): Uint8Array {
  const file = new Uint8Array(8 + header.byteLength + dataBytes);
  new DataView(file.buffer).setBigUint64(0, length, true);
  file.set(header, 8);
  return file;
}

const first = safetensors({
  'embed.weight': { dtype: 'BF16', shape: [10, 6], bytes: 120 },
  'norm.bias': { dtype: 'F32', shape: [3], bytes: 12 },
});
const second = safetensors({ scale: { dtype: 'F32', shape: [], bytes: 4 } }, { __metadata__: { format: 'pt' } });

const tensorsOf = (file: Uint8Array) => {
  const read = header(file);
  return read.ok ? read.value.tensors : [];
};

const header = (file: Uint8Array | string) =>
  readSafetensorsHeader(fakePorts({ files: { '/m/a.safetensors': file } }), '/m/a.safetensors');

describe('a header', () => {
  it('lists its tensors and not its metadata', () => {
    expect(header(first)).toEqual({
      ok: true,
      value: {
        fileBytes: first.byteLength,
        tensors: [
          { name: 'embed.weight', dtype: 'BF16', shape: [10, 6], bytes: 120 },
          { name: 'norm.bias', dtype: 'F32', shape: [3], bytes: 12 },
        ],
      },
    });
    expect(header(second)).toMatchObject({ ok: true, value: { tensors: [{ name: 'scale', shape: [] }] } });
  });

  const json = (text: string) => framed(new TextEncoder().encode(text));
  it.each<[string, Uint8Array | string, string]>([
    ['shorter than a length', new Uint8Array(5), 'is too short to hold a safetensors header'],
    ['cut inside', first.slice(0, 40), 'ends inside its safetensors header'],
    [
      'a web page',
      '<html><body>not here</body></html>',
      expect.stringMatching(/^is no safetensors file \(a header of \d+ bytes\)$/),
    ],
    [
      'over the limit',
      framed(new Uint8Array(9), 0, 100_000_001n),
      'is no safetensors file (a header of 100000001 bytes)',
    ],
    ['not JSON', json('{"a": '), 'has a safetensors header that is not JSON'],
    ['a list', json('[]'), 'has a safetensors header that is not an object'],
    [
      'entries of another kind',
      json('{"a": {"dtype": "F32", "shape": [2]}}'),
      'has a safetensors header with entries that are no tensors',
    ],
    [
      'sizes below zero',
      json('{"a": {"dtype": "F32", "shape": [-2], "data_offsets": [0, 8]}}'),
      'has a safetensors header with entries that are no tensors',
    ],
    [
      'offsets backwards',
      json('{"a": {"dtype": "F32", "shape": [2], "data_offsets": [8, 0]}}'),
      'has a safetensors header with entries that are no tensors',
    ],
    ['an entry that is null', json('{"a": null}'), 'has a safetensors header with entries that are no tensors'],
  ])('%s', (_, file, error) => expect(header(file)).toEqual({ ok: false, error }));

  it('that cannot be read', () => {
    expect(readSafetensorsHeader(fakePorts(), '/m/none')).toEqual({ ok: false, error: 'cannot be read (ENOENT)' });
  });
});

describe('a checkpoint', () => {
  const measure = (files: Record<string, string | Uint8Array>, sizes: Record<string, number> = {}) =>
    measureCheckpoint(
      fakePorts({
        files: Object.fromEntries(Object.entries(files).map(([name, content]) => [`/m/${name}`, content])),
        sizes: Object.fromEntries(Object.entries(sizes).map(([name, size]) => [`/m/${name}`, size])),
      }),
      '/m',
    );
  const index = (...names: string[]) =>
    JSON.stringify({
      metadata: { total_size: 9 },
      weight_map: Object.fromEntries(names.map((name, at) => [`t${at}`, name])),
    });

  it('in one file', () => {
    expect(measure({ 'model.safetensors': first, 'adapter_model.safetensors': second, 'optimizer.bin': 'xx' })).toEqual(
      {
        checkpointBytes: first.byteLength,
        largestShardBytes: first.byteLength,
        storedParameters: 63,
        storedTensors: [...tensorsOf(first)],
        notes: [],
      },
    );
  });

  it('in shards, each counted once', () => {
    const names = ['model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'] as const;
    const shards = { [names[0]]: first, [names[1]]: second };
    const expected = {
      checkpointBytes: first.byteLength + second.byteLength,
      largestShardBytes: first.byteLength,
      storedParameters: 64,
      storedTensors: [...tensorsOf(first), ...tensorsOf(second)],
      notes: [],
    };
    expect(measure({ ...shards, 'model.safetensors.index.json': index(names[0], names[1], names[0]) })).toEqual(
      expected,
    );
    expect(measure(shards)).toEqual(expected);
  });

  it('whose index is alone, or names more than is there', () => {
    const named = { 'model.safetensors.index.json': index('model-1.safetensors', 'model-2.safetensors') };
    expect(measure(named)).toEqual({ notes: [] });
    expect(measure({ ...named, 'model-1.safetensors': first })).toEqual({
      notes: ['/m holds 1 of the 2 weight files its index names'],
    });
  });

  it('whose index cannot be followed', () => {
    const note = ['/m/model.safetensors.index.json cannot be understood'];
    for (const text of ['{', '{}', '{"weight_map": {"t": 5}}', '{"weight_map": {"t": "../../etc/passwd"}}', 'null']) {
      expect(measure({ 'model.safetensors.index.json': text })).toEqual({ notes: note });
    }
  });

  it('in .bin files, by size', () => {
    const names = { 'pytorch_model.bin.index.json': index('pytorch_model-1.bin', 'pytorch_model-2.bin') };
    expect(measure(names, { 'pytorch_model-1.bin': 5000, 'pytorch_model-2.bin': 300 })).toEqual({
      checkpointBytes: 5300,
      largestShardBytes: 5000,
      notes: [],
    });
    expect(measure({}, { 'pytorch_model.bin': 77, 'training_args.bin': 5 })).toMatchObject({ checkpointBytes: 77 });
  });

  it('that was cut short keeps its size and says so', () => {
    expect(measure({ 'model.safetensors': first.slice(0, -60) })).toEqual({
      checkpointBytes: first.byteLength - 60,
      largestShardBytes: first.byteLength - 60,
      notes: [`/m/model.safetensors is cut short: ${first.byteLength - 60} of ${first.byteLength} bytes are there`],
    });
  });

  it('that is not there', () => expect(measure({ 'config.json': '{}' })).toEqual({ notes: [] }));
});
