import { describe, expect, it } from 'vitest';
import { readLaunchPartly } from '../../../src/dialects/index.ts';
import { WRAPPERS } from '../../../src/dialects/wrappers/index.ts';
import { contextOf, type Machine, peel } from '../reading.ts';

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
    readLaunchPartly(line.split(' '), contextOf())
      .reading!.diagnostics.map(({ code, location }) => `${code} ${location}`)
      .filter((each) => !/^unknown-(?:processes|trainer)/.test(each));

  it.each([
    ['docker run --gpus all img python a.py', ['unread-command argv[0]']],
    ['tmux new -d python a.py', ['unread-command argv[0]']],
    ['env -S python', ['unread-command argv[1]']],
    ['hatch run gpu:python a.py', ['unread-command argv[2]']],
    ['nice --weird cp a.txt', ['wrapper-option argv[1]']],
    ['timeout -k', ['wrapper-option argv[1]']],
    ['nsys profile -o report ./binary', ['unread-command argv[0]']],
    ['conda run --cwd /data -n e python a.py', ['other-folder argv[3]']],
    ['uv run --directory sub python a.py', ['other-folder argv[3]']],
    ['uv run --env-file gone.env python a.py', ['env-file argv[3]']],
    ['srun -D /data python a.py', ['other-folder argv[2]']],
    ['srun -n 4 python a.py', ['tasks-without-ranks argv[1]']],
    ['srun -n 4 torchrun a.py', []],
    ['srun -n 1 python a.py', []],
    ['bashful python a.py', []],
  ])('%s', (line, expected) => expect(notes(line)).toEqual(expected));

  it('hands on nothing of a command it did not look through', () => {
    const [layer] = peel(['docker', 'run', 'python', 'a.py'], WRAPPERS).layers;
    expect(layer?.reading.handOn).toBeUndefined();
    expect(layer?.reading.unread).toEqual([
      {
        key: 'docker run python a.py',
        origin: { kind: 'argv', index: 0 },
        reason: 'the command inside docker is not looked through yet',
      },
    ]);
    expect(layer?.reading.diagnostics?.[0]?.help).toBe('put snug inside: docker … snug run -- COMMAND');
  });
});

/** `wrappers | launchers and trainers | nodes × processes`. */
function launch(line: string, machine: Machine = {}): string {
  const { wrappers, stack, parallelism } = readLaunchPartly(line.split(' '), contextOf(machine)).reading!;
  const numbers = `${parallelism?.nodes ?? '?'} × ${parallelism?.processesPerNode ?? '?'}`;
  return [wrappers.join(', '), stack.map(({ dialect }) => dialect).join('+'), numbers].join(' | ');
}

describe('the command behind programs with many options', () => {
  it.each([
    ['srun --mpi=pmix -N 2 --gres gpu:4 torchrun --nproc-per-node 3 a.py', 'srun | torchrun | 1 × 3'],
    ['srun --new-option word torchrun --nproc-per-node 3 a.py', 'srun | torchrun | 1 × 3'],
    ['srun --exclusive bash -c true torchrun', 'srun, bash |  | ? × ?'],
    ['poetry run --new x torchrun --nproc-per-node 3 a.py', 'poetry run | torchrun | 1 × 3'],
    ['uv run --new-flag --other python a.py', 'uv run | python | 1 × 1'],
    [
      'conda run --no-capture-output -n e --odd 1 accelerate launch --num_processes 2 a.py',
      'conda run | accelerate | 1 × 2',
    ],
    [
      'nsys profile -t cuda,nvtx -o rep --stats=true torchrun --nproc-per-node 3 a.py',
      'nsys profile | torchrun | 1 × 3',
    ],
    ['py-spy record -o profile.svg -- python a.py', 'py-spy record | python | 1 × 1'],
    [
      'systemd-run --scope -p MemoryMax=64G nohup torchrun --nproc-per-node 3 a.py',
      'systemd-run, nohup | torchrun | 1 × 3',
    ],
    ['apptainer exec --nv img.sif torchrun --nproc-per-node 3 a.py', 'apptainer exec | torchrun | 1 × 3'],
    ['flock /tmp/gpu.lock trl sft --output_dir o', 'flock | trl | 1 × ?'],
    ['mpirun -np 4 python a.py', 'mpirun | python | 1 × 4'],
    ['mpirun -np 8 -npernode 4 -x NCCL_DEBUG=INFO python a.py', 'mpirun | python | 2 × 4'],
    ['mpirun --odd 3 -np 4 python a.py', 'mpirun | python | 1 × 1'],
  ])('%s', (line, expected) => expect(launch(line)).toBe(expected));

  it('takes a word of the file name for no command', () => {
    expect(launch('nice --weird x.txt torchrun.md', {})).toBe('nice |  | ? × ?');
  });
});
