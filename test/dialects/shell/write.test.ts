// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of a shell
import { describe, expect, it } from 'vitest';
import { read, readBack, rewrite, said } from '../phrase-book.ts';

const SCRIPT = `#!/bin/bash
# my run
set -e
export PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8
BS=8   # rows
ARGS=(--bf16 true --optim adamw_torch)
torchrun --nproc-per-node 2 tune.py \\
  --per_device_train_batch_size "$BS" --max_length 512 \\   
  "\${ARGS[@]}" --output_dir "out/$(date)" 2>&1 | tee log   # kept
echo done
`;

const refit = (text: string, settings: object, line = 'bash t.sh a') => {
  const files = { 't.sh': text };
  return rewrite(read(line, { files, gpus: 2 }), settings);
};

/** Lines that differ. */
const changed = (before: string, after: string): string[] => {
  const lines = before.split('\n');
  return after.split('\n').filter((line, at) => line !== lines[at]);
};

describe('a change of a command inside a script', () => {
  it('is made in a copy, word by word', () => {
    const script = SCRIPT.replace('\\   \n', '\\\n');
    const fitted = refit(script, { perDeviceTrainBatchSize: 2, gradientAccumulationSteps: 4 });
    expect(fitted.argv).toEqual(['bash', '/copies/t.sh', 'a']);
    expect(fitted.byHand).toBeUndefined();
    expect(changed(script, fitted.files[0]!.text)).toEqual([
      '  --per_device_train_batch_size 2 --max_length 512 \\',
      '  "${ARGS[@]}" --output_dir "out/$(date)" --gradient_accumulation_steps 4 2>&1 | tee log   # kept',
    ]);
    const again = readBack(fitted, { gpus: 2 });
    expect(said(again, 'perDeviceTrainBatchSize', 'gradientAccumulationSteps', 'optim')).toEqual({
      perDeviceTrainBatchSize: '2 <- /copies/t.sh:8',
      gradientAccumulationSteps: '4 <- /copies/t.sh:9',
      optim: '"adamw_torch" <- /copies/t.sh:9',
    });
  });

  it('writes a list out where one of its words changes', () => {
    const script = SCRIPT.replace('\\   \n', '\\\n');
    const fitted = refit(script, { optim: 'adamw_bnb_8bit' });
    expect(changed(script, fitted.files[0]!.text)).toEqual([
      '  --bf16 true --optim adamw_bnb_8bit --output_dir "out/$(date)" 2>&1 | tee log   # kept',
    ]);
  });

  it('puts a variable that the script sets in front of the command', () => {
    const script = SCRIPT.replace('\\   \n', '\\\n');
    const fitted = refit(script, { allocatorConf: 'expandable_segments:True' });
    expect(fitted.env).toEqual({});
    expect(changed(script, fitted.files[0]!.text)).toEqual([
      'PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8,expandable_segments:True torchrun --nproc-per-node 2 tune.py \\',
    ]);
  });

  it('hands other variables to the process', () => {
    const fitted = refit('python tune.py --do_train --output_dir o\n', { allocatorConf: 'expandable_segments:True' });
    expect(fitted).toMatchObject({ env: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' }, files: [] });
  });

  it('changes the text behind -c in its word', () => {
    const text = 'cd d && python tune.py --per_device_train_batch_size 8 --output_dir o | tee l';
    const fitted = rewrite(read(`bash -c '${text}'`, { gpus: 1 }), { perDeviceTrainBatchSize: 1 });
    expect(fitted.argv).toEqual(['bash', '-c', text.replace(' 8 ', ' 1 ')]);
  });

  it('names the interpreter of a script that was started by itself', () => {
    const files = { 't.sh': '#!/bin/sh\npython tune.py --per_device_train_batch_size 8 --output_dir o\n' };
    const fitted = rewrite(read('nohup ./t.sh x', { files, gpus: 1 }), { perDeviceTrainBatchSize: 1 });
    expect(fitted.argv).toEqual(['nohup', 'sh', '/copies/t.sh', 'x']);
  });

  it('reaches through a script that starts a script', () => {
    const files = {
      'o.sh': 'set -e\nbash t.sh 8\n',
      't.sh': 'python tune.py --per_device_train_batch_size $1 --output_dir o\n',
    };
    const fitted = rewrite(read('bash o.sh', { files, gpus: 1 }), { perDeviceTrainBatchSize: 1 });
    expect(fitted.argv).toEqual(['bash', '/copies/o.sh']);
    expect(fitted.files.map(({ source, text }) => `${source}: ${text}`)).toEqual([
      't.sh: python tune.py --per_device_train_batch_size 1 --output_dir o\n',
      'o.sh: set -e\nbash /copies/t.sh 8\n',
    ]);
  });

  it('changes a config that the command names, and the name in the script', () => {
    const files = { 't.sh': 'trl sft --config c.yaml\n', 'c.yaml': 'model_name_or_path: a/b # m\nmax_length: 4096\n' };
    const fitted = rewrite(read('bash t.sh', { files, gpus: 1 }), { maxLength: 512 });
    expect(fitted.files.map(({ text }) => text)).toEqual([
      'model_name_or_path: a/b # m\nmax_length: 512\n',
      'trl sft --config /copies/c.yaml\n',
    ]);
  });
});

describe('a script of which no copy may be started', () => {
  const COMMAND = 'python tune.py --per_device_train_batch_size 8 --output_dir o';
  it.each([
    [`cd "$(dirname "$0")"\n${COMMAND}\n`, 'the script asks where it lies ($0), and a copy lies elsewhere', 't.sh:2'],
    [`${COMMAND}\n${COMMAND} --bf16 true\n`, 'the script starts other trainings too', 't.sh:1'],
    [`eval "${COMMAND}"\n`, 'its words come out of a variable', 't.sh:1'],
  ])('%j', (text, reason, place) => {
    const files = { 't.sh': text };
    const chosen = { path: 't.sh', line: Number(place.split(':')[1]) };
    const fitted = rewrite(read('bash t.sh', { files, gpus: 1, chosen }), { perDeviceTrainBatchSize: 1 });
    expect(fitted).toMatchObject({ argv: ['bash', 't.sh'], files: [] });
    expect(fitted.byHand).toEqual({ reason, place, command: COMMAND.replace(' 8 ', ' 1 ') });
  });

  it('keeps its lines and variables in what is to be written', () => {
    const text = 'srun torchrun --nproc-per-node $SLURM_GPUS_ON_NODE \\\n  tune.py --do_train --output_dir o\n';
    const files = { 'j.sbatch': `#SBATCH --gres=gpu:2\n${text}` };
    const changes = { perDeviceTrainBatchSize: 1, allocatorConf: 'expandable_segments:True' };
    expect(rewrite(read('sbatch j.sbatch', { files }), changes).byHand?.command).toBe(
      `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True ${text.trim()} --per_device_train_batch_size 1`,
    );
  });
});
