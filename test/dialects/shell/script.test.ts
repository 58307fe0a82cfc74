// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of a shell
import { describe, expect, it } from 'vitest';
import { readBareFile, readLaunchPartly } from '../../../src/dialects/index.ts';
import { read, said } from '../phrase-book.ts';
import { contextOf, type Machine } from '../reading.ts';

const FLAGS = '--per_device_train_batch_size 6 --output_dir o';

/** `wrappers | stack | batch <- origin | nodes × processes`. */
function understood(line: string, machine: Machine): string {
  const reading = read(line, machine);
  const { nodes, processesPerNode } = reading.parallelism!;
  return [
    reading.wrappers.join(', '),
    reading.stack.map(({ dialect }) => dialect).join('+'),
    said(reading, 'perDeviceTrainBatchSize').perDeviceTrainBatchSize,
    `${nodes ?? '?'} × ${processesPerNode ?? '?'}`,
  ].join(' | ');
}

describe('the training command inside a script', () => {
  it.each<[line: string, text: string, expected: string]>([
    ['bash t.sh', `python tune.py ${FLAGS}\n`, 'bash | python+hf-trainer | 6 <- t.sh:1 | 1 × 1'],
    ['nohup sh -x t.sh', `\npython \\\n  tune.py ${FLAGS}\n`, 'nohup, sh | python+hf-trainer | 6 <- t.sh:3 | 1 × 1'],
    [
      'bash t.sh 3',
      `torchrun --nproc-per-node $1 tune.py ${FLAGS}`,
      'bash | torchrun+hf-trainer | 6 <- t.sh:1 | 1 × 3',
    ],
    [
      'N=5 bash t.sh',
      `torchrun --nproc-per-node \${N:-2} tune.py ${FLAGS}`,
      'bash | torchrun+hf-trainer | 6 <- t.sh:1 | 1 × 5',
    ],
    [
      'bash t.sh',
      `N=5; torchrun --nproc-per-node $N tune.py ${FLAGS}`,
      'bash | torchrun+hf-trainer | 6 <- t.sh:1 | 1 × 5',
    ],
    [
      'bash t.sh',
      `export CUDA_VISIBLE_DEVICES=0,3\ntorchrun --nproc-per-node gpu tune.py ${FLAGS}`,
      'bash | torchrun+hf-trainer | 6 <- t.sh:2 | 1 × 2',
    ],
    [
      'bash t.sh',
      `CUDA_VISIBLE_DEVICES=0,3\ntorchrun --nproc-per-node gpu tune.py ${FLAGS}`,
      'bash | torchrun+hf-trainer | 6 <- t.sh:2 | 1 × 8',
    ],
    [
      'bash t.sh',
      `python prepare.py --out d\npython tune.py ${FLAGS}\necho python tune.py`,
      'bash | python+hf-trainer | 6 <- t.sh:2 | 1 × 8',
    ],
    [
      'bash t.sh',
      `LAUNCH="torchrun --nproc-per-node 2"\n$LAUNCH tune.py ${FLAGS}`,
      'bash | torchrun+hf-trainer | 6 <- t.sh:2 | 1 × 2',
    ],
    [
      'bash t.sh',
      `exec nohup srun -N1 torchrun tune.py ${FLAGS}`.replace('exec ', ''),
      'bash, nohup, srun | torchrun+hf-trainer | 6 <- t.sh:1 | 1 × 1',
    ],
    ['./t.sh', `#!/bin/bash\npython tune.py ${FLAGS}`, 'bash | python+hf-trainer | 6 <- ./t.sh:2 | 1 × 8'],
    ['bash outer.sh', `python tune.py ${FLAGS}`, 'bash, bash | python+hf-trainer | 6 <- t.sh:1 | 1 × 8'],
  ])('%s: %j', (line, text, expected) => {
    const files = { 't.sh': text, 'outer.sh': 'set -e\nbash t.sh\n' };
    const gpus = expected.endsWith('1 × 1') ? 1 : 8;
    expect(understood(line, { files, gpus })).toBe(expected);
  });

  it.each([
    [`bash -c 'python tune.py ${FLAGS}'`, 'bash | python+hf-trainer | 6 <- argv[2] | 1 × 1'],
    [
      `sh -lc 'cd d && torchrun --nproc-per-node 3 tune.py ${FLAGS} 2>&1 | tee l'`,
      'sh | torchrun+hf-trainer | 6 <- argv[2] | 1 × 3',
    ],
    [
      `bash -c 'python tune.py --per_device_train_batch_size $1 --output_dir o' x 6`,
      'bash | python+hf-trainer | 6 <- argv[2] | 1 × 1',
    ],
  ])('%s', (line, expected) => expect(understood(line, { gpus: 1 })).toBe(expected));

  it('finds files from the folder the script has gone to, its own too', () => {
    const yaml = 'model_name_or_path: a/b\nper_device_train_batch_size: 3\n';
    const at = (cd: string) =>
      understood('bash jobs/t.sh', {
        files: { 'jobs/t.sh': `${cd}\ntrl sft --config c.yaml\n`, 'jobs/c.yaml': yaml },
        gpus: 1,
      });
    const expected = 'bash | trl | 3 <- c.yaml:2 | 1 × 1';
    expect(at('cd jobs')).toBe(expected);
    expect(at('cd "$(dirname "$0")"')).toBe(expected);
    expect(at('cd "$( cd "$( dirname "${BASH_SOURCE[0]}" )" && pwd )"')).toBe(expected);
  });

  it('leaves what only running would tell open', () => {
    const files = { 't.sh': `python tune.py ${FLAGS} --max_length $(wc -l < list) --run_name "x-$(date)"\n` };
    const reading = read('bash t.sh', { files, gpus: 1 });
    expect(reading.spec.maxLength?.value).toBeNull();
    expect(reading.unread).toContainEqual({
      key: 'max_length',
      origin: { kind: 'file', path: 't.sh', line: 1 },
      reason: 'interpolation',
    });
  });

  it('takes the Python of the environment that the script switches on', () => {
    const files = { 't.sh': `source /opt/e/bin/activate\npython tune.py ${FLAGS}\n` };
    expect(read('bash t.sh', { files }).python).toBe('/opt/e/bin/python');
  });
});

describe('what is said of a script', () => {
  const codes = (text: string, line = 'bash t.sh'): string[] =>
    readLaunchPartly(line.split(' '), contextOf({ files: { 't.sh': text }, gpus: 1 })).reading!.diagnostics.map(
      ({ code, location }) => `${code} ${location}`,
    );

  it.each([
    ['no command', 'echo hello\n', ['unread-command t.sh']],
    ['two that differ', `python tune.py ${FLAGS}\npython tune.py ${FLAGS} --bf16 true\n`, ['several-commands t.sh:1']],
    ['the same twice', `python tune.py ${FLAGS}\npython tune.py ${FLAGS}\n`, []],
    ['in a loop', `for i in 1 2; do python tune.py ${FLAGS}; done`, ['in-a-block t.sh:1']],
    ['in a folder nobody knows', `cd $(mktemp -d)\npython tune.py ${FLAGS}`, ['other-folder t.sh:2']],
  ])('%s', (_, text, expected) => {
    expect(codes(text).filter((each) => !/^unknown-(?:processes|trainer)/.test(each))).toEqual(expected);
  });

  it('takes the command at the line that was chosen', () => {
    const text = `python tune.py ${FLAGS}\npython tune.py --output_dir o \\\n --per_device_train_batch_size 9\n`;
    const context = contextOf({ files: { 't.sh': text }, gpus: 1 });
    const bare = readBareFile('t.sh:3', context);
    if (!bare.ok) throw new Error(JSON.stringify(bare.error));
    expect(said(bare.value.reading, 'perDeviceTrainBatchSize').perDeviceTrainBatchSize).toBe('9 <- t.sh:3');
    const none = readBareFile('t.sh:8', context);
    expect(none.ok && none.value.reading.diagnostics.map(({ code }) => code)).toContain('no-command-there');
  });

  it('says the way out of several commands', () => {
    const text = `python a.py ${FLAGS}\npython b.py ${FLAGS}\n`;
    const [first] = readLaunchPartly(['bash', 't.sh'], contextOf({ files: { 't.sh': text } })).reading!.diagnostics;
    expect(first).toMatchObject({
      message: 't.sh starts 2 trainings, and none was chosen',
      notes: [`t.sh:1  python a.py ${FLAGS}`.slice(0, 68), `t.sh:2  python b.py ${FLAGS}`.slice(0, 68)],
      help: 'choose one by its line: snug check t.sh:1',
    });
  });
});

describe('a job script', () => {
  const job = (directives: string, command: string): Record<string, string> => ({
    'j.sbatch': `#!/bin/bash\n${directives}\n${command} ${FLAGS}\n`,
  });
  const bare = (files: Record<string, string>, environment = {}) => {
    const read_ = readBareFile('j.sbatch', contextOf({ files, environment }));
    if (!read_.ok) throw new Error(JSON.stringify(read_.error));
    return read_.value.reading;
  };

  it.each([
    ['#SBATCH --gres=gpu:4', { nodes: 1, gpusPerNode: 4 }],
    ['#SBATCH --gres gpu:a100:2,tmp:10G', { nodes: 1, gpusPerNode: 2, gpuType: 'a100' }],
    ['#SBATCH -N 2 -G 16', { nodes: 2, gpusPerNode: 8 }],
    ['#SBATCH --gpus-per-task=1\n#SBATCH --ntasks-per-node=4', { nodes: 1, gpusPerNode: 4, tasksPerNode: 4 }],
    ['#SBATCH --gpus-per-node=h100:8 # all', { nodes: 1, gpusPerNode: 8, gpuType: 'h100' }],
    ['#SBATCH --mem=64G', { nodes: 1, hostRamBytes: 64 * 2 ** 30, hostRamPlace: '--mem at j.sbatch:2' }],
    ['#SBATCH --mem=0', { nodes: 1 }],
    [
      '#SBATCH --mem-per-cpu=4000 -c 8',
      { nodes: 1, cpusPerTask: 8, hostRamBytes: 32000 * 2 ** 20, hostRamPlace: '--mem-per-cpu at j.sbatch:2' },
    ],
    [
      '#SBATCH --mem-per-gpu=50G\n#SBATCH --gres=gpu:2',
      { nodes: 1, gpusPerNode: 2, hostRamBytes: 100 * 2 ** 30, hostRamPlace: '--mem-per-gpu at j.sbatch:2' },
    ],
    ['# SBATCH --gres=gpu:4\n##SBATCH --gres=gpu:3\n#SBATCH -J x', { nodes: 1 }],
    ['echo x\n#SBATCH --gres=gpu:4', undefined],
  ])('asks for what its lines say: %j', (directives, allocation) => {
    expect(bare(job(directives, 'python tune.py')).allocation).toEqual(allocation);
  });

  it('knows the variables that Slurm will set', () => {
    const files = job(
      '#SBATCH -N 2 --gres=gpu:4 --ntasks-per-node=1',
      'srun torchrun --nnodes $SLURM_NNODES --nproc-per-node=$SLURM_GPUS_ON_NODE tune.py',
    );
    expect(bare(files).spec.distributed?.value).toMatchObject({ nodes: 2, processesPerNode: 4 });
  });

  it('is started by Slurm outside an allocation, and here inside one', () => {
    const files = job('#SBATCH --gres=gpu:2', 'torchrun --nproc-per-node 2 tune.py');
    const outside = bare(files);
    expect(outside.command.argv).toEqual(['sbatch', 'j.sbatch']);
    expect(outside.startsElsewhere).toMatchObject({ code: 'needs-allocation', location: 'j.sbatch:3' });
    const inside = bare(files, { SLURM_JOB_ID: '7' });
    expect(inside.command.argv).toEqual(['bash', 'j.sbatch']);
    expect(inside.startsElsewhere).toBeUndefined();
  });

  it('is beaten by the options of the command line', () => {
    const files = job('#SBATCH --gres=gpu:2 --mem=8G', 'python tune.py');
    const reading = read('sbatch --gres=gpu:8 --time 4:00:00 j.sbatch', { files });
    expect(reading.allocation).toMatchObject({ gpusPerNode: 8, hostRamBytes: 8 * 2 ** 30 });
    expect(reading.wrappers).toEqual(['sbatch']);
    expect(reading.startsElsewhere?.code).toBe('needs-allocation');
  });

  it('may stand in a word', () => {
    const reading = read(`sbatch --gres=gpu:2 --wrap 'torchrun --nproc-per-node 2 tune.py ${FLAGS}'`);
    expect(said(reading, 'perDeviceTrainBatchSize').perDeviceTrainBatchSize).toBe('6 <- argv[3]');
  });
});

describe('no script', () => {
  it.each(['notes.sh.txt', 'run.py'])('%s', (name) => {
    const bare = readBareFile(name, contextOf({ files: { [name]: 'python tune.py --output_dir o\n' } }));
    expect(bare.ok).toBe(false);
  });
});
