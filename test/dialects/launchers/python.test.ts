import { describe, expect, it } from 'vitest';
import { layerOf, notesOf, readLine } from './read-line.ts';

const PLAIN = '1 × 1 plain, python starts one process';

describe('what python starts', () => {
  it.each([
    ['python train.py --lr 1', `python | ${PLAIN} | script train.py, 2`],
    ['python3.11 -u -X faulthandler train.py', `python | ${PLAIN} | script train.py, 5`],
    ['/opt/e/bin/python -Wignore -W error train.py', `python | ${PLAIN} | script train.py, 5`],
    ['python -OO -m pkg.train --lr 1', `python | ${PLAIN} | module pkg.train, 4`],
    ['python -mpkg.train --lr 1', `python | ${PLAIN} | module pkg.train, 2`],
    ['python3.13t train.py', `python | ${PLAIN} | script train.py, 2`],
    ['python -- train.py -m x', `python | ${PLAIN} | script train.py, 3`],
    ['./train.py --lr 1', `python | ${PLAIN} | script ./train.py, 1`],
    ['uv run train.py --lr 1', `python | ${PLAIN} | script train.py, 3`],
    ['uv run -m pkg.train --lr 1', `python | ${PLAIN} | module pkg.train, 4`],
    ['uv run --module pkg.train', `python | ${PLAIN} | module pkg.train, 4`],
    ['python -um pkg.train --lr 1', `python | ${PLAIN} | module pkg.train, 3`],
    ['nohup conda run -n e python -u train.py', `python | ${PLAIN} | script train.py, 8`],
    ['some-trainer --lr 1', `program | ? × ? ranks, argv[0] | program some-trainer, 1`],
    ['/opt/bin/pythonista train.py', `program | ? × ? ranks, argv[0] | program /opt/bin/pythonista, 1`],
    ['python', `python | ${PLAIN} | nothing`],
    ['python -', `python | ${PLAIN} | nothing`],
    ['python -c import(x)', `python | ${PLAIN} | nothing`],
    ['python --weird train.py', `python | ${PLAIN} | nothing`],
    ['python -m', `python | ${PLAIN} | nothing`],
  ])('%s', (line, expected) => expect(readLine(line)).toBe(expected));

  it.each([
    ['python3 train.py', 'python3'],
    ['/opt/e/bin/python train.py', '/opt/e/bin/python'],
    ['./train.py', undefined],
    ['some-trainer', undefined],
  ])('%s runs in %s', (line, python) => expect(layerOf(line).reading.python).toBe(python));

  it('says what it could not read', () => {
    expect(notesOf('nohup python -c x')).toEqual(['unread-command argv[1]']);
    expect(notesOf('python train.py')).toEqual([]);
  });
});

describe('one of several processes that somebody started', () => {
  it.each<[environment: Record<string, string>, gpus: number | undefined, expected: string]>([
    [{ WORLD_SIZE: '4', RANK: '0', LOCAL_RANK: '0' }, undefined, '1 × 4 ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '4', RANK: '0', MASTER_ADDR: '127.0.0.1' }, 2, '1 × 4 ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '16', RANK: '3', LOCAL_WORLD_SIZE: '8' }, undefined, '2 × 8 ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '16', RANK: '3', MASTER_ADDR: 'node1' }, 4, '4 × 4 ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '16', RANK: '3', MASTER_ADDR: 'node1' }, undefined, '? × ? ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '6', RANK: '3', LOCAL_WORLD_SIZE: '4' }, undefined, '? × ? ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '1', RANK: '0' }, 2, '1 × 1 ranks, env WORLD_SIZE'],
    [{ WORLD_SIZE: '1' }, 2, PLAIN],
    [{ WORLD_SIZE: 'two' }, 2, PLAIN],
    [{ RANK: '0' }, 2, PLAIN],
  ])('%j with %s GPUs', (environment, gpus, expected) => {
    expect(readLine('python train.py', { environment, gpus })).toBe(`python | ${expected} | script train.py, 2`);
  });

  it('hears assignments of the command itself', () => {
    expect(readLine('WORLD_SIZE=2 RANK=1 python train.py')).toBe(
      'python | 1 × 2 ranks, env WORLD_SIZE | script train.py, 4',
    );
    expect(notesOf('WORLD_SIZE=2 RANK=1 python train.py')).toEqual(['started-by-rank env WORLD_SIZE']);
    expect(readLine('env -u WORLD_SIZE python train.py', { environment: { WORLD_SIZE: '2' } })).toBe(
      `python | ${PLAIN} | script train.py, 5`,
    );
  });
});
