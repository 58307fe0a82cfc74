import { lastOption } from '../scan-options.ts';
import { otherFolder, type WrapperSpec, wrapper } from './wrapper.ts';

const run = (program: string, docs: string, flags: readonly string[]): ReturnType<typeof wrapper> =>
  wrapper({
    id: program,
    title: `${program} run`,
    docs,
    words: [program, 'run'],
    options: {
      flags: [
        ...flags,
        '-v|--verbose',
        '-q|--quiet',
        '--dev',
        '--debug-wrapper-scripts',
        '--no-capture-output|--live-stream',
      ],
      values: ['-n|--name', '-p|--prefix', '--cwd', '-r|--root-prefix', '-e|--env', '-a|--attach', '--label'],
    },
    effect: inEnvironment,
  });

/** The environment's own interpreter where its folder is given; by name only the tool itself finds it. */
const inEnvironment: NonNullable<WrapperSpec['effect']> = (scan) => {
  const prefix = lastOption(scan, '--prefix')?.value;
  const folder = lastOption(scan, '--cwd');
  return {
    ...(prefix ? { python: `${prefix.replace(/\/$/, '')}/bin/python` } : {}),
    ...(folder ? { diagnostics: [otherFolder('conda run', folder.value!, folder.valueIndex)] } : {}),
  };
};

export const conda = run('conda', 'https://docs.conda.io/projects/conda/en/stable/commands/run.html', ['--no-dev']);
const MAMBA = 'https://mamba.readthedocs.io/en/latest/user_guide/micromamba.html';
export const mamba = run('mamba', MAMBA, ['--clean-env']);
export const micromamba = run('micromamba', MAMBA, ['--clean-env', '-d|--detach']);
