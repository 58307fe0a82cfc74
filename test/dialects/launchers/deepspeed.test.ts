import { describe, expect, it } from 'vitest';
import { readLaunchPartly } from '../../../src/dialects/index.ts';
import { readBack, read as readWhole, rewrite } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';
import { layerOf, notesOf, readLine, refusalOf } from './read-line.ts';

const HOSTS = { '/job/hostfile': '# pool\nn0 slots=4\nn1 slots=4\n\n', hosts: 'a slots=8\nb slots=6\n', bad: 'a 8\n' };

describe('what deepspeed starts', () => {
  it.each<[line: string, expected: string, machine?: Machine]>([
    ['deepspeed train.py', '1 × ? ranks, the visible GPUs, unknown here | script train.py, 2'],
    ['deepspeed train.py --num_gpus 9', '1 × 6 ranks, 6 visible GPUs | script train.py, 2', { gpus: 6 }],
    ['deepspeed --num_gpus=3 train.py', '1 × 3 ranks, argv[1] | script train.py, 3'],
    ['deepspeed --num_accelerators 3 train.py', '1 × 3 ranks, argv[2] | script train.py, 4'],
    ['deepspeed --num_gpus 3 --num_nodes 2 train.py', '2 × 3 ranks, argv[2] | script train.py, 6'],
    ['deepspeed --include localhost:1,3 train.py', '1 × 2 ranks, argv[2] | script train.py, 4'],
    ['deepspeed -i localhost train.py', '1 × 6 ranks, argv[2] | script train.py, 4', { gpus: 6 }],
    ['deepspeed --exclude localhost:0 train.py', '1 × 5 ranks, argv[2] | script train.py, 4', { gpus: 6 }],
    [
      'deepspeed --master_port 29511 --module pkg.train x',
      '1 × 6 ranks, 6 visible GPUs | module pkg.train, 5',
      { gpus: 6 },
    ],
    ['deepspeed --no_python --num_gpus 2 trainer x', '1 × 2 ranks, argv[3] | program trainer, 5'],
    ['python -m deepspeed.launcher.runner --num_gpus 2 train.py', '1 × 2 ranks, argv[4] | script train.py, 6'],
    ['deepspeed train.py', '2 × 4 ranks, /job/hostfile:1 | script train.py, 2', { files: HOSTS }],
    ['deepspeed --num_nodes 1 train.py', '1 × 4 ranks, /job/hostfile:1 | script train.py, 4', { files: HOSTS }],
    ['deepspeed --num_gpus 2 train.py', '2 × 2 ranks, argv[2] | script train.py, 4', { files: HOSTS }],
    ['deepspeed -H hosts train.py', '2 × 6 ranks, hosts:1 | script train.py, 4', { files: HOSTS }],
    ['deepspeed -H hosts -e b train.py', '1 × 8 ranks, argv[4] | script train.py, 6', { files: HOSTS }],
    [
      'deepspeed -H hosts --include a:0,1@b:2,3 train.py',
      '2 × 2 ranks, argv[4] | script train.py, 6',
      { files: HOSTS },
    ],
    ['deepspeed -H elsewhere -i a:0,1@b:2,3 train.py', '2 × 2 ranks, argv[4] | script train.py, 6'],
  ])('%s', (line, expected, machine) => expect(readLine(line, machine)).toBe(`deepspeed | ${expected}`));

  it.each([
    ['python deepspeed', 'python'],
    ['deepspeedy train.py', 'program'],
  ])('leaves %s to %s', (line, dialect) => expect(layerOf(line).dialect.id).toBe(dialect));

  it.each<[line: string, expected: string[], machine?: Machine]>([
    ['deepspeed --num_gpus 2', ['no-script argv[0]']],
    ['deepspeed --gpus 2 train.py', ['bad-option argv[1]']],
    ['deepspeed --num_gpus 2 --include localhost:0 train.py', ['bad-option argv[3]']],
    ['deepspeed --include n1:0 --exclude n1:1 train.py', ['bad-option argv[1]']],
    ['deepspeed --include n9:0 train.py', ['bad-option argv[2]'], { files: HOSTS }],
    ['deepspeed --include n1:7 train.py', ['bad-option argv[2]'], { files: HOSTS }],
    ['deepspeed --exclude localhost train.py', ['bad-option argv[2]'], { gpus: 2 }],
    ['deepspeed -H bad train.py', ['bad-hostfile bad:1'], { files: HOSTS }],
  ])('refuses %s', (line, expected, machine) => expect(refusalOf(line, machine)).toEqual(expected));

  it.each<[line: string, expected: string[], machine?: Machine]>([
    ['deepspeed --num_gpus 4 train.py', ['too-few-gpus argv[2]'], { gpus: 2 }],
    ['deepspeed --num_gpus 2 train.py', [], { gpus: 2 }],
    ['deepspeed -H hosts train.py', ['uneven-processes hosts:1'], { files: HOSTS }],
    ['deepspeed --num_gpus $G train.py', ['not-a-number argv[2]']],
    ['deepspeed --autotuning run train.py', ['not-estimated argv[1]']],
  ])('says about %s: %j', (line, expected, machine) => expect(notesOf(line, machine)).toEqual(expected));
});

describe('a rewrite of the number of processes', () => {
  const to = (processesPerNode: number) => ({ nodes: 1, processesPerNode, strategy: 'ddp', offload: [] });
  const trainer = 'train.py --per_device_train_batch_size 2 --output_dir o';
  it.each([
    ['deepspeed --num_gpus=4', 'deepspeed --num_gpus=2'],
    ['deepspeed --num_gpus 4', 'deepspeed --num_gpus 2'],
    ['deepspeed', 'deepspeed --num_gpus 2'],
  ])('%s', (line, expected) => {
    const machine = { gpus: 4 };
    const fitted = rewrite(readWhole(`${line} ${trainer}`, machine), { distributed: to(2) });
    expect(fitted.argv.join(' ')).toBe(`${expected} ${trainer}`);
    expect(readBack(fitted, machine).spec.distributed?.value).toEqual(to(2));
  });

  it('is refused where the GPUs are chosen one by one', () => {
    const reading = readWhole(`deepspeed --include localhost:0,1 ${trainer}`);
    expect(reading.writable('distributed', to(1))).toBe('--include or --exclude chooses the GPUs one by one');
  });
});

describe('a DeepSpeed file that is not there', () => {
  it.each([
    ['conf/ds_zero2.json', 'zero2'],
    ['ds_z3_offload_config.json', 'zero3'],
    ['stage-1.json', 'zero1'],
    ['config2.json', null],
    ['zero.json', null],
  ])('%s: %s by its name', (path, strategy) => {
    const { reading, errors } = partly(`deepspeed --num_gpus 2 ${trainerWith(path)}`);
    expect(errors).toHaveLength(1);
    expect(reading?.stack.map(({ dialect }) => dialect)).toEqual(['deepspeed', 'hf-trainer', 'deepspeed-config']);
    expect(reading?.parallelism).toEqual({ nodes: 1, processesPerNode: 2, strategy, offload: [] });
  });
});

const trainerWith = (path: string): string =>
  `train.py --per_device_train_batch_size 2 --output_dir o --deepspeed ${path}`;

const partly = (line: string) => readLaunchPartly(line.split(' '), contextOf());
