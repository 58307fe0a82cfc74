import { expect, it } from 'vitest';
import type { FilePort } from '../../src/core/index.ts';
import { newestCompleteCheckpoint } from '../../src/supervisor/index.ts';

type Tree = { readonly [name: string]: Uint8Array | string | Tree };

const isTree = (node: unknown): node is Tree => typeof node === 'object' && !(node instanceof Uint8Array);

/** Files that exist only in the test. */
function filesOf(root: Tree): FilePort {
  const find = (path: string): Uint8Array | string | Tree | undefined =>
    path
      .split('/')
      .filter(Boolean)
      .reduce<Uint8Array | string | Tree | undefined>((at, name) => (isTree(at) ? at[name] : undefined), root);
  const bytesOf = (path: string): Uint8Array | undefined => {
    const node = find(path);
    if (node === undefined || isTree(node)) return undefined;
    return typeof node === 'string' ? new TextEncoder().encode(node) : node;
  };
  return {
    info: (path) => {
      const node = find(path);
      if (node === undefined) return undefined;
      return { kind: isTree(node) ? 'folder' : 'file', sizeBytes: bytesOf(path)?.length ?? 0, modifiedMs: 0 };
    },
    readText: (path) => {
      const bytes = bytesOf(path);
      return bytes ? { ok: true, value: new TextDecoder().decode(bytes) } : { ok: false, code: 'ENOENT' };
    },
    readBytes: (path, offset, length) => {
      const bytes = bytesOf(path);
      return bytes ? { ok: true, value: bytes.slice(offset, offset + length) } : { ok: false, code: 'ENOENT' };
    },
    list: (path) => {
      const node = find(path);
      return isTree(node) ? Object.keys(node).sort() : [];
    },
    volume: () => undefined,
  };
}

function safetensors(dataBytes: number, missing = 0): Uint8Array {
  const header = new TextEncoder().encode(
    JSON.stringify({
      __metadata__: { format: 'pt' },
      a: { dtype: 'BF16', shape: [dataBytes / 2], data_offsets: [0, dataBytes] },
    }),
  );
  const bytes = new Uint8Array(8 + header.length + dataBytes);
  new DataView(bytes.buffer).setBigUint64(0, BigInt(header.length), true);
  bytes.set(header, 8);
  return bytes.slice(0, bytes.length - missing);
}
const zip = (comment = 0): Uint8Array =>
  Uint8Array.from([0x50, 0x4b, 3, 4, 1, 2, 3, 4, 0x50, 0x4b, 5, 6, ...new Array(18 + comment).fill(0)]);
const cutZip = Uint8Array.from([0x50, 0x4b, 3, 4, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
const state = (step: number): string => JSON.stringify({ global_step: step, train_batch_size: 6, max_steps: 900 });

const whole = (step: number): Tree => ({
  'adapter_model.safetensors': safetensors(24),
  'optimizer.pt': zip(),
  'trainer_state.json': state(step),
});
const found = (checkpoints: Tree) => newestCompleteCheckpoint('/out', filesOf({ out: checkpoints }));
/** Why a checkpoint beside a whole older one was passed over; undefined: it was taken. */
const flawOf = (newer: Tree): string | undefined =>
  found({ 'checkpoint-30': whole(30), 'checkpoint-200': newer })?.skipped[0]?.reason;

it('takes the highest step, not the last name', () => {
  expect(
    found({ 'checkpoint-9': whole(9), 'checkpoint-120': whole(120), 'checkpoint-80': whole(80), runs: {} }),
  ).toEqual({
    path: '/out/checkpoint-120',
    step: 120,
    trainBatchSize: 6,
    maxSteps: 900,
    skipped: [],
  });
});

it('has nothing to offer in an empty or unknown folder', () => {
  expect(found({})).toBeUndefined();
  expect(found({ 'checkpoint-best': whole(3), 'checkpoint-12': 'a file', 'checkpoint-x7': whole(7) })).toBeUndefined();
  expect(newestCompleteCheckpoint('/elsewhere', filesOf({}))).toBeUndefined();
});

it('passes over those that are not whole, and says why', () => {
  const { 'trainer_state.json': _, ...stateless } = whole(300);
  expect(
    found({
      'checkpoint-100': whole(100),
      'checkpoint-200': { ...whole(200), 'optimizer.pt': cutZip },
      'checkpoint-300': stateless,
    }),
  ).toMatchObject({
    path: '/out/checkpoint-100',
    step: 100,
    skipped: [
      { path: '/out/checkpoint-300', reason: 'trainer_state.json is missing' },
      { path: '/out/checkpoint-200', reason: 'optimizer.pt was cut off (no zip end record)' },
    ],
  });
});

it('has nothing to offer when none is whole', () => {
  expect(found({ 'checkpoint-5': { ...whole(5), 'trainer_state.json': '{"global_step": 5' } })).toBeUndefined();
});

it('compares the length of safetensors files with their header', () => {
  const bytes = safetensors(24);
  const size = bytes.length;
  expect(flawOf({ ...whole(200), 'adapter_model.safetensors': safetensors(24, 5) })).toBe(
    `adapter_model.safetensors has ${size - 5} bytes where its header promises ${size}`,
  );
  expect(flawOf({ ...whole(200), 'adapter_model.safetensors': bytes.slice(0, 20) })).toBe(
    'adapter_model.safetensors ends inside its header',
  );
  expect(flawOf({ ...whole(200), 'adapter_model.safetensors': new Uint8Array(3) })).toBe(
    'adapter_model.safetensors is too short for a header',
  );
  expect(flawOf({ ...whole(200), 'adapter_model.safetensors': safetensors(4096) })).toBeUndefined();
});

it('wants every shard that the index names', () => {
  const index = (...shards: string[]): string =>
    JSON.stringify({ weight_map: Object.fromEntries(shards.map((shard, at) => [`layer.${at}`, shard])) });
  const sharded = (extra: Tree): Tree => ({
    'optimizer.pt': zip(),
    'trainer_state.json': state(200),
    'model-00001-of-00002.safetensors': safetensors(64),
    'model.safetensors.index.json': index('model-00001-of-00002.safetensors', 'model-00002-of-00002.safetensors'),
    ...extra,
  });
  expect(flawOf(sharded({}))).toBe('model-00002-of-00002.safetensors is missing');
  expect(flawOf(sharded({ 'model-00002-of-00002.safetensors': safetensors(32, 1) }))).toMatch(
    /^model-00002.* promises/,
  );
  expect(flawOf(sharded({ 'model-00002-of-00002.safetensors': safetensors(32) }))).toBeUndefined();
  expect(flawOf(sharded({ 'model.safetensors.index.json': '{}' }))).toBe('model.safetensors.index.json names no shard');
  expect(flawOf(sharded({ 'model.safetensors.index.json': '{"weight' }))).toBe(
    'model.safetensors.index.json is not JSON',
  );
});

it('reads files of torch.save by their zip end record', () => {
  const bin = (weights: Uint8Array | string): Tree => ({
    'pytorch_model.bin': weights,
    'optimizer.pt': zip(),
    'trainer_state.json': state(200),
  });
  expect(flawOf(bin(zip()))).toBeUndefined();
  expect(flawOf(bin(zip(300)))).toBeUndefined();
  expect(flawOf(bin(cutZip))).toBe('pytorch_model.bin was cut off (no zip end record)');
  expect(flawOf(bin(''))).toBe('pytorch_model.bin is empty');
});

it('wants weights and an optimizer state', () => {
  expect(flawOf({ 'optimizer.pt': zip(), 'trainer_state.json': state(200) })).toBe('no weights');
  expect(flawOf({ 'model.safetensors': safetensors(8), 'trainer_state.json': state(200) })).toBe('no optimizer state');
});

it('reads a DeepSpeed state: the folder that latest names, with a part of every rank', () => {
  const rank = (number: number): Tree => ({ [`bf16_zero_pp_rank_${number}_mp_rank_00_optim_states.pt`]: zip() });
  const zero = (tag: Tree, extra: Tree = {}): Tree => ({
    latest: 'global_step200\n',
    global_step200: { 'mp_rank_00_model_states.pt': zip(), ...tag },
    'rng_state_0.pth': zip(),
    'rng_state_1.pth': zip(),
    'trainer_state.json': state(200),
    ...extra,
  });
  expect(flawOf(zero({ ...rank(0), ...rank(1) }))).toBeUndefined();
  expect(flawOf(zero(rank(0)))).toBe('global_step200 has optimizer states of 1 of 2 ranks');
  expect(flawOf(zero({}))).toBe('global_step200 has no optimizer states');
  expect(flawOf(zero({ ...rank(0), 'bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt': cutZip }))).toMatch(/cut off/);
  expect(flawOf(zero({ ...rank(0), ...rank(1) }, { latest: 'global_step900' }))).toBe(
    'global_step900 has no model states',
  );
});

it('reads a sharded FSDP state by the metadata that is written last', () => {
  const shards: Tree = { '__0_0.distcp': 'x', '__1_0.distcp': 'y', '.metadata': 'm' };
  const { '.metadata': _, ...unfinished } = shards;
  const fsdp = (model: Tree, optimizer: Tree): Tree => ({
    pytorch_model_fsdp_0: model,
    optimizer_0: optimizer,
    'trainer_state.json': state(200),
  });
  expect(flawOf(fsdp(shards, shards))).toBeUndefined();
  expect(flawOf(fsdp(unfinished, shards))).toBe('pytorch_model_fsdp_0/.metadata is missing');
  expect(flawOf(fsdp(shards, { '.metadata': 'm' }))).toBe('optimizer_0 has no .distcp file');
  expect(flawOf(fsdp({ ...shards, '__1_0.distcp': '' }, shards))).toBe('__1_0.distcp is empty');
});
