import { describe, expect, it } from 'vitest';
import type { Distributed } from '../../../src/spec/index.ts';
import { read, readBack, rewrite } from '../phrase-book.ts';
import type { Machine } from '../reading.ts';

const SCRIPT = 'train.py --model_name_or_path a/b --per_device_train_batch_size 2 --output_dir out';
const shared = (to: Partial<Distributed>): Distributed => ({
  nodes: 1,
  processesPerNode: 2,
  strategy: 'ddp',
  offload: [],
  ...to,
});

/** The command and the changed lines of each copy, and what reading the result says. */
function told(line: string, to: Distributed, machine: Machine = {}) {
  const fitted = rewrite(read(line, machine), { distributed: to }, {});
  expect(readBack(fitted, machine).spec.distributed?.value).toEqual(to);
  return { argv: fitted.argv.join(' '), files: fitted.files.map(({ copy, text }) => `${copy}: ${text}`) };
}

describe('telling accelerate who holds what', () => {
  const stage2 = 'distributed_type: DEEPSPEED # keep\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 2   # two\n';

  it('changes the stage and adds offload in a copy of the named file', () => {
    const to = shared({ strategy: 'zero3', offload: ['optimizer', 'parameters'] });
    const machine = { files: { 'conf/z2.yaml': stage2 } };
    expect(told(`accelerate launch --config_file=conf/z2.yaml ${SCRIPT}`, to, machine)).toEqual({
      argv: `accelerate launch --config_file=/copies/z2.yaml ${SCRIPT}`,
      files: [
        '/copies/z2.yaml: distributed_type: DEEPSPEED # keep\nnum_processes: 2\ndeepspeed_config:\n  zero_stage: 3   # two\n  offload_optimizer_device: cpu\n  offload_param_device: cpu\n',
      ],
    });
  });

  it('changes the flag that wins over the file', () => {
    const machine = { files: { 'z2.yaml': stage2 } };
    const line = `accelerate launch --config_file z2.yaml --zero_stage=1 ${SCRIPT}`;
    expect(told(line, shared({ strategy: 'zero3' }), machine).argv).toBe(
      `accelerate launch --config_file z2.yaml --zero_stage=3 ${SCRIPT}`,
    );
  });

  it('adds flags where the default file cannot be replaced', () => {
    const path = '/home/u/.cache/huggingface/accelerate/default_config.yaml';
    const fsdp = 'distributed_type: FSDP\nnum_processes: 2\n';
    const to = shared({ strategy: 'fsdp1', offload: ['optimizer', 'parameters'] });
    expect(told(`accelerate launch ${SCRIPT}`, to, { files: { [path]: fsdp } })).toEqual({
      argv: `accelerate launch --fsdp_offload_params true ${SCRIPT}`,
      files: [],
    });
  });

  it('changes keys under the names the file gives them', () => {
    const files = {
      'f.yaml': 'distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {version: 2, offload_params: true}\n',
    };
    expect(
      told(`accelerate launch --config_file f.yaml ${SCRIPT}`, shared({ strategy: 'fsdp2' }), { files }).files,
    ).toEqual([
      '/copies/f.yaml: distributed_type: FSDP\nnum_processes: 2\nfsdp_config: {version: 2, offload_params: false}\n',
    ]);
  });

  it('changes a DeepSpeed file in a copy, and the file that names it', () => {
    const files = {
      'd.yaml': 'distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n',
      'ds.json': '{\n  "zero_optimization": {\n    "stage": 2,\n    "overlap_comm": true\n  }\n}\n',
    };
    const to = shared({ strategy: 'zero3', offload: ['optimizer'] });
    const { argv, files: copies } = told(`accelerate launch --config_file d.yaml ${SCRIPT}`, to, { files });
    expect(argv).toBe(`accelerate launch --config_file /copies/d.yaml ${SCRIPT}`);
    expect(copies.find((copy) => copy.includes('ds.json:'))).toContain('"stage": 3,\n    "overlap_comm": true');
    expect(copies.find((copy) => copy.includes('d.yaml:'))).toContain('deepspeed_config_file: /copies/ds.json\n');
  });

  it.each<[what: string, text: string, to: Distributed, reason: RegExp]>([
    ['another number of machines', stage2, shared({ nodes: 2, strategy: 'zero2' }), /each machine/],
    ['parameters below stage 3', stage2, shared({ strategy: 'zero2', offload: ['parameters'] }), /stage 3/],
    ['FSDP instead of DeepSpeed', stage2, shared({ strategy: 'fsdp2' }), /no stage for fsdp2/],
    [
      'one half of FSDP offload',
      'distributed_type: FSDP\nnum_processes: 2\n',
      shared({ strategy: 'fsdp1', offload: ['optimizer'] }),
      /together or not at all/,
    ],
    ['another FSDP', 'distributed_type: FSDP\nnum_processes: 2\n', shared({ strategy: 'fsdp2' }), /another FSDP setup/],
    [
      'sharding where none is set up',
      'distributed_type: MULTI_GPU\nnum_processes: 2\n',
      shared({ strategy: 'zero3' }),
      /not set up/,
    ],
    [
      'what a merge key brings',
      'x: &x {zero_stage: 2}\ndistributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config:\n  <<: *x\n',
      shared({ strategy: 'zero3' }),
      /merge key/,
    ],
  ])('refuses %s', (_, text, to, reason) => {
    const reading = read(`accelerate launch --config_file c.yaml ${SCRIPT}`, { files: { 'c.yaml': text } });
    expect(reading.writable('distributed', to)).toMatch(reason);
  });
});

describe('telling accelerate the autocast', () => {
  it('changes it where it was set, as a string that stays one', () => {
    const files = { 'c.yaml': 'distributed_type: MULTI_GPU\nnum_processes: 2\nmixed_precision: bf16\n' };
    const reading = read(`accelerate launch --config_file c.yaml ${SCRIPT}`, { files });
    const layer = reading.internals!.view.layers.find(({ dialect }) => dialect.id === 'accelerate')!;
    expect(layer.dialect.write!(layer, 'mixedPrecision', 'no', reading.internals!.view)).toEqual({
      ok: true,
      edits: [{ kind: 'file', path: 'c.yaml', keyPath: ['mixed_precision'], value: 'no' }],
    });
  });
});
