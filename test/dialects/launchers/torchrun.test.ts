import { describe, expect, it } from 'vitest';
import type { Distributed } from '../../../src/spec/index.ts';
import type { Machine } from '../reading.ts';
import { layerOf, notesOf, readLine, refusalOf } from './read-line.ts';

describe('what torchrun starts', () => {
  it.each<[line: string, expected: string, machine?: Machine]>([
    ['torchrun train.py', '1 × 1 ranks, default torchrun 2.13 | script train.py, 2'],
    ['torchrun --nproc-per-node 3 train.py --nproc-per-node 9', '1 × 3 ranks, argv[2] | script train.py, 4'],
    ['torchrun --nproc_per_node=3 train.py', '1 × 3 ranks, argv[1] | script train.py, 3'],
    ['torchrun --nproc_per 3 train.py', '1 × 3 ranks, argv[2] | script train.py, 4'],
    ['torchrun --nproc=2 --nproc=3 train.py', '1 × 3 ranks, argv[2] | script train.py, 4'],
    [
      'torchrun --standalone --nnodes 1 --nproc-per-node 2 -m pkg.train x',
      '1 × 2 ranks, argv[5] | module pkg.train, 8',
    ],
    ['torchrun --nproc-per-node 2 --no-python trainer x', '1 × 2 ranks, argv[2] | program trainer, 5'],
    ['torchrun --nproc-per-node 2 --no_python --run-path /a/x.py', '1 × 2 ranks, argv[2] | script /a/x.py, 6'],
    ['torchrun --nproc-per-node 2 -- train.py', '1 × 2 ranks, argv[2] | script train.py, 5'],
    [
      'torchrun --nnodes=4 --node-rank 1 --master_addr n0 --nproc-per-node=8 train.py',
      '4 × 8 ranks, argv[6] | script train.py, 8',
    ],
    ['torchrun --nnodes 2:4 --nproc-per-node 8 train.py', '2 × 8 ranks, argv[4] | script train.py, 6'],
    ['torchrun --nnodes 3:3 --nproc-per-node 8 train.py', '3 × 8 ranks, argv[4] | script train.py, 6'],
    ['torchrun --nproc-per-node gpu train.py', '1 × 6 ranks, argv[2] | script train.py, 4', { gpus: 6 }],
    ['torchrun --nproc-per-node auto train.py', '1 × ? ranks, argv[2] | script train.py, 4'],
    ['torchrun --nproc-per-node cpu train.py', '1 × ? ranks, argv[2] | script train.py, 4', { gpus: 6 }],
    ['torchrun --nproc-per-node $GPUS train.py', '1 × ? ranks, argv[2] | script train.py, 4', { gpus: 6 }],
    [
      'torchrun train.py',
      '2 × 4 ranks, env PET_NPROC_PER_NODE | script train.py, 2',
      { environment: { PET_NPROC_PER_NODE: '4', PET_NNODES: '2' } },
    ],
    ['PET_NPROC_PER_NODE=4 torchrun --nproc-per-node 2 train.py', '1 × 2 ranks, argv[3] | script train.py, 5'],
    ['PET_MODULE=1 torchrun pkg.train', '1 × 1 ranks, default torchrun 2.13 | module pkg.train, 3'],
    ['PET_MODULE=0 torchrun train.py', '1 × 1 ranks, default torchrun 2.13 | script train.py, 3'],
    ['python -m torch.distributed.run --nproc-per-node 2 train.py', '1 × 2 ranks, argv[4] | script train.py, 6'],
    [
      'python3 -u -m torch.distributed.launch --use_env --nproc_per_node=2 train.py',
      '1 × 2 ranks, argv[5] | script train.py, 7',
    ],
    ['uv run -m torch.distributed.run --nproc-per-node 2 train.py', '1 × 2 ranks, argv[5] | script train.py, 7'],
    ['/opt/e/bin/torchrun -r 3 -t1 --nproc-per-node 2 train.py', '1 × 2 ranks, argv[5] | script train.py, 7'],
  ])('%s', (line, expected, machine) => expect(readLine(line, machine)).toBe(`torchrun | ${expected}`));

  it.each([
    ['python -m torch.distributed.runner train.py', 'python'],
    ['python torchrun', 'python'],
    ['./torchrun.sh train.py', 'program'],
  ])('leaves %s to %s', (line, dialect) => expect(layerOf(line).dialect.id).toBe(dialect));

  it.each([
    ['torchrun', ['no-script argv[0]']],
    ['torchrun --nproc-per-node 2', ['no-script argv[0]']],
    ['torchrun --gpus 2 train.py', ['bad-option argv[1]']],
    ['torchrun --nproc-per-node --nnodes 2 train.py', ['bad-option argv[1]']],
    ['torchrun --r 2 train.py', ['bad-option argv[1]']],
    ['nohup torchrun --standalone=1 train.py', ['bad-option argv[2]']],
  ])('refuses %s', (line, expected) => expect(refusalOf(line)).toEqual(expected));

  it.each<[line: string, expected: string[], machine?: Machine]>([
    ['torchrun --nproc-per-node 4 train.py', ['too-few-gpus argv[2]'], { gpus: 2 }],
    ['torchrun --nproc-per-node 4 train.py', [], { gpus: 4 }],
    ['torchrun --nproc-per-node 4 train.py', []],
    ['torchrun --nnodes 2:4 train.py', ['elastic-nodes argv[2]']],
    ['torchrun --nnodes 2:2 train.py', []],
    ['torchrun -r 3 --nproc-per-node 2 train.py', ['hidden-output argv[2]']],
    ['torchrun --redirects=0:1,1:2 train.py', ['hidden-output argv[1]']],
    ['torchrun --redirects 1 train.py', []],
    ['torchrun --redirects 3 --tee 2 train.py', []],
    ['torchrun --nnodes two train.py', ['not-a-number argv[2]']],
    ['torchrun --nproc-per-node $G train.py', ['not-a-number argv[2]']],
  ])('says about %s: %j', (line, expected, machine) => expect(notesOf(line, machine)).toEqual(expected));

  it('names the options that were not looked at, and the interpreter', () => {
    const { reading } = layerOf(
      '/opt/e/bin/python -m torch.distributed.run --master-port=29511 --nproc-per-node 2 train.py',
    );
    expect(reading.unread).toEqual([
      { key: '--master-port', origin: { kind: 'argv', index: 3 }, reason: 'no-effect-on-memory' },
    ]);
    expect(reading.python).toBe('/opt/e/bin/python');
  });
});

describe('telling torchrun', () => {
  const now: Distributed = { nodes: 1, processesPerNode: 2, strategy: 'ddp', offload: [] };
  const write = (line: string, to: Partial<Distributed>) => {
    const layer = layerOf(line);
    const spec = { distributed: { value: now, origin: layer.reading.processes!.origin } };
    return layer.dialect.write!(
      layer,
      'distributed',
      { ...now, ...to },
      { argv: line.split(' '), layers: [layer], spec },
    );
  };

  it('changes the number where it is typed, else puts it in', () => {
    expect(write('torchrun --nproc_per_node=2 train.py', { processesPerNode: 1 })).toEqual({
      ok: true,
      edits: [{ kind: 'token', index: 1, text: '--nproc_per_node=1' }],
    });
    expect(write('torchrun --nproc-per-node 2 train.py', { processesPerNode: 1 })).toEqual({
      ok: true,
      edits: [{ kind: 'token', index: 2, text: '1' }],
    });
    expect(write('python -m torch.distributed.run train.py', { processesPerNode: 1 })).toEqual({
      ok: true,
      edits: [{ kind: 'insert', at: 3, key: '--nproc-per-node', tokens: ['--nproc-per-node', '1'] }],
    });
  });

  it('leaves sharding to others, and nodes alone', () => {
    expect(write('torchrun train.py', { strategy: 'zero3' })).toBeUndefined();
    expect(write('torchrun train.py', { nodes: 2 })).toMatchObject({ ok: false });
    expect(write('torchrun train.py', {})).toEqual({ ok: true, edits: [] });
  });
});
