import { describe, expect, it } from 'vitest';
import { WRAPPERS } from '../../../src/dialects/wrappers/index.ts';
import { type Machine, peel } from '../reading.ts';

/** `names | variables that changed | what is left`. */
function read(line: string, machine: Machine = {}): string {
  const argv = line.split(' ');
  const { layers, position } = peel(argv, WRAPPERS, machine);
  const names = layers.map(({ reading }) => reading.label).filter((label) => label !== '');
  const before = machine.environment ?? {};
  const changed = Object.entries(position.environment).filter(([name, value]) => before[name] !== value);
  const variables = changed.map(([name, value]) => (value === undefined ? `-${name}` : `${name}=${value}`));
  return [names.join(', '), variables.join(' '), argv.slice(position.index).join(' ')].join(' | ');
}

describe('what a wrapper leaves', () => {
  it.each([
    ['python a.py --lr 1', ' |  | python a.py --lr 1'],
    ['A=1 B= C=x=y python a.py', ' | A=1 B= C=x=y | python a.py'],
    ['A=1 A=2 python a.py', ' | A=2 | python a.py'],
    ['env python a.py', 'env |  | python a.py'],
    ['/usr/bin/env A=1 B=2 python a.py', 'env | A=1 B=2 | python a.py'],
    ['A=1 env -u A --unset=B C=3 python a.py', 'env | C=3 | python a.py'],
    ['env -- python a.py', 'env |  | python a.py'],
    ['env -C /data python a.py', 'env |  | python a.py'],
    ['nohup time nice -n 5 python a.py', 'nohup, time, nice |  | python a.py'],
    ['nice -n5 ionice -c2 -n 7 python a.py', 'nice, ionice |  | python a.py'],
    ['nice -10 python a.py', 'nice |  | python a.py'],
    ['nice --adjustment=3 python a.py', 'nice |  | python a.py'],
    ['time -p python a.py', 'time |  | python a.py'],
    ['/usr/bin/time -v -o t.txt python a.py', 'time |  | python a.py'],
    ['stdbuf -oL -eL python a.py', 'stdbuf |  | python a.py'],
    ['timeout 4h python a.py', 'timeout 4h |  | python a.py'],
    ['timeout -s INT --kill-after=30 90m python a.py', 'timeout 90m |  | python a.py'],
    ['numactl --cpunodebind=0 -m 0 python a.py', 'numactl |  | python a.py'],
    ['taskset -c 0-7 python a.py', 'taskset |  | python a.py'],
    ['taskset 0xff python a.py', 'taskset |  | python a.py'],
    ['setsid -w chrt -b 0 python a.py', 'setsid, chrt |  | python a.py'],
    ['conda run -n tune --no-capture-output python a.py', 'conda run |  | python a.py'],
    ['conda run --live-stream --prefix /opt/e torchrun a.py', 'conda run |  | torchrun a.py'],
    ['micromamba run -n tune python a.py', 'micromamba run |  | python a.py'],
    ['uv run python a.py', 'uv run |  | python a.py'],
    ['uv run a.py --lr 1', 'uv run |  | a.py --lr 1'],
    ['uv run -m pkg.train --lr 1', 'uv run |  | -m pkg.train --lr 1'],
    ['uv run --with peft -w bitsandbytes --extra gpu -p 3.12 --frozen -- trl sft', 'uv run |  | trl sft'],
    ['uv --project sub run --no-sync torchrun a.py', 'uv run |  | torchrun a.py'],
    ['uvx --from trl[peft] trl sft', 'uvx |  | trl sft'],
    ['uv tool run --from trl trl sft', 'uv tool run |  | trl sft'],
    ['poetry -C sub run python a.py', 'poetry run |  | python a.py'],
    ['pdm run -p sub python a.py', 'pdm run |  | python a.py'],
    ['pipenv run python a.py', 'pipenv run |  | python a.py'],
    ['hatch -e gpu run python a.py', 'hatch run |  | python a.py'],
    ['pixi run -e gpu --frozen python a.py', 'pixi run |  | python a.py'],
    ['rye run python a.py', 'rye run |  | python a.py'],
    [
      'A=1 nohup env B=2 uv run --env-file .env accelerate launch a.py',
      'nohup, env, uv run | A=1 B=2 | accelerate launch a.py',
    ],
  ])('%s', (line, expected) => expect(read(line)).toBe(expected));
});

describe('what is no wrapper stays', () => {
  it.each([
    'nohup',
    'timeout 4h',
    'env A=1',
    'A=1',
    'uv sync python a.py',
    'uv pip run python a.py',
    'poetry install',
    'conda activate tune',
    'nice.py --lr 1',
    'torchrun --nproc-per-node 2 nohup.py',
    'trl env',
    './time.sh x',
    '1A=2 python a.py',
    'model=a.b python',
  ])('%s', (line) => {
    const { layers } = peel(line.split(' '), WRAPPERS);
    const kept = line.startsWith('model=') ? ['assignments'] : [];
    expect(layers.map(({ dialect }) => dialect.id)).toEqual(kept);
  });

  it('takes NAME=value for a variable only in front of everything', () => {
    expect(read('nohup A=1 python a.py')).toBe('nohup |  | A=1 python a.py');
  });
});

describe('the environment behind a wrapper', () => {
  const environment = { PATH: '/bin', CUDA_VISIBLE_DEVICES: '1', HF_TOKEN: 't' };
  it.each([
    ['env -i A=1 python a.py', 'env | -PATH -CUDA_VISIBLE_DEVICES -HF_TOKEN A=1 | python a.py'],
    ['env - python a.py', 'env | -PATH -CUDA_VISIBLE_DEVICES -HF_TOKEN | python a.py'],
    ['env -u HF_TOKEN python a.py', 'env | -HF_TOKEN | python a.py'],
    ['sudo python a.py', 'sudo | -CUDA_VISIBLE_DEVICES -HF_TOKEN | python a.py'],
    ['sudo -E python a.py', 'sudo |  | python a.py'],
    ['sudo --preserve-env=HF_TOKEN -u train A=1 python a.py', 'sudo | -CUDA_VISIBLE_DEVICES A=1 | python a.py'],
    ['nohup python a.py', 'nohup |  | python a.py'],
  ])('%s', (line, expected) => expect(read(line, { environment })).toBe(expected));

  it('reads the variables of an env file, those that are set already winning', () => {
    const files = {
      'gpu.env': '# cards\nexport CUDA_VISIBLE_DEVICES="2,3"\nNAME=run 1 # one\nHF_TOKEN=\'x\'\nbroken line\n',
    };
    expect(read('uv run --env-file gpu.env a.py', { environment: { HF_TOKEN: 't' }, files })).toBe(
      'uv run | CUDA_VISIBLE_DEVICES=2,3 NAME=run 1 | a.py',
    );
    expect(read('uv run --env-file gpu.env --no-env-file a.py', { files })).toBe('uv run |  | a.py');
  });
});

describe('the Python a wrapper names', () => {
  it.each([
    ['uv run -p 3.12 a.py', 'python3.12'],
    ['uv run --python /opt/e/bin/python a.py', '/opt/e/bin/python'],
    ['conda run -p /opt/e/ python a.py', '/opt/e/bin/python'],
    ['conda run -n tune python a.py', undefined],
  ])('%s', (line, python) => expect(peel(line.split(' '), WRAPPERS).layers[0]?.reading.python).toBe(python));
});

describe('said instead of misread', () => {
  const notes = (line: string) =>
    peel(line.split(' '), WRAPPERS)
      .layers.flatMap(({ reading }) => reading.diagnostics ?? [])
      .map(({ code, location }) => `${code} ${location}`);

  it.each([
    ['srun --ntasks 4 python a.py', ['unread-command argv[0]']],
    ['nohup bash train.sh', ['unread-command argv[1]']],
    ['bash -c torchrun', ['unread-command argv[0]']],
    ['mpirun -np 4 python a.py', ['unread-command argv[0]']],
    ['docker run --gpus all img python a.py', ['unread-command argv[0]']],
    ['sbatch job.sh', ['unread-command argv[0]']],
    ['env -S python', ['unread-command argv[1]']],
    ['hatch run gpu:python a.py', ['unread-command argv[2]']],
    ['nice --weird python a.py', ['wrapper-option argv[1]']],
    ['timeout -k', ['wrapper-option argv[1]']],
    ['conda run --cwd /data -n e python a.py', ['other-folder argv[3]']],
    ['uv run --directory sub python a.py', ['other-folder argv[3]']],
    ['uv run --env-file gone.env python a.py', ['env-file argv[3]']],
    ['nice systemd-run --scope -p MemoryMax=64G python a.py', ['unread-command argv[1]']],
    ['bashful python a.py', []],
  ])('%s', (line, expected) => expect(notes(line)).toEqual(expected));

  it('hands on nothing of a command it did not look through', () => {
    const [layer] = peel(['srun', 'python', 'a.py', '--lr', '1'], WRAPPERS).layers;
    expect(layer?.reading.handOn).toBeUndefined();
    expect(layer?.reading.unread).toEqual([
      {
        key: 'srun python a.py --lr 1',
        origin: { kind: 'argv', index: 0 },
        reason: 'the command inside srun is not looked through yet',
      },
    ]);
    expect(layer?.reading.diagnostics?.[0]?.help).toBe('put snug inside the job: srun … snug run -- COMMAND');
  });
});
