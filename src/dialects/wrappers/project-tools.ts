import { note } from '../../core/index.ts';
import { lastOption } from '../scan-options.ts';
import { otherFolder, wrapper } from './wrapper.ts';

/** Tools that run a command inside a project's own environment. */

export const poetry = wrapper({
  id: 'poetry',
  title: 'poetry run',
  docs: 'https://python-poetry.org/docs/cli/#run',
  words: ['poetry', 'run'],
  options: {
    flags: [
      '-q|--quiet',
      '-v|--verbose',
      '-vv',
      '-vvv',
      '--ansi',
      '--no-ansi',
      '-n|--no-interaction',
      '--no-plugins',
      '--no-cache',
    ],
    values: ['-C|--directory', '-P|--project'],
  },
  effect(scan) {
    const folder = lastOption(scan, '--directory');
    return folder ? { diagnostics: [otherFolder('poetry run', folder.value!, folder.valueIndex)] } : {};
  },
});

export const pdm = wrapper({
  id: 'pdm',
  title: 'pdm run',
  docs: 'https://pdm-project.org/latest/reference/cli/#run',
  words: ['pdm', 'run'],
  options: {
    flags: ['-s|--site-packages', '-v|--verbose', '-q|--quiet', '--recreate', '-I|--ignore-python'],
    values: ['-p|--project', '--venv', '-c|--config', '-k|--skip'],
  },
});

export const pipenv = wrapper({
  id: 'pipenv',
  title: 'pipenv run',
  docs: 'https://pipenv.pypa.io/en/latest/cli.html',
  words: ['pipenv', 'run'],
  options: {
    flags: ['-q|--quiet', '-v|--verbose', '--site-packages', '--clear'],
    values: ['--python', '--pypi-mirror'],
  },
});

export const rye = wrapper({
  id: 'rye',
  title: 'rye run',
  docs: 'https://rye.astral.sh/guide/commands/run/',
  words: ['rye', 'run'],
  options: { flags: ['-l|--list'], values: ['--pyproject'] },
});

export const pixi = wrapper({
  id: 'pixi',
  title: 'pixi run',
  docs: 'https://pixi.sh/latest/reference/cli/pixi/run/',
  words: ['pixi', 'run'],
  options: {
    flags: [
      '--clean-env',
      '--skip-deps',
      '--frozen',
      '--locked',
      '--as-is',
      '--no-install',
      '--no-lockfile-update',
      '-x|--executable',
      '-q|--quiet',
      '-v|--verbose',
      '--force-activate',
      '--no-completions',
      '-n|--dry-run',
      '--revalidate',
      '--no-progress',
    ],
    values: [
      '-m|--manifest-path',
      '-e|--environment',
      '-w|--workspace',
      '--color',
      '--auth-file',
      '--pypi-keyring-provider',
      '--concurrent-downloads',
      '--concurrent-solves',
      '--tls-no-verify',
    ],
  },
});

export const hatch = wrapper({
  id: 'hatch',
  title: 'hatch run',
  docs: 'https://hatch.pypa.io/latest/cli/reference/#hatch-run',
  words: ['hatch', 'run'],
  options: {
    flags: ['-v|--verbose', '-q|--quiet', '--color', '--no-color', '--interactive', '--no-interactive'],
    values: ['-e|--env', '-p|--project', '--data-dir', '--cache-dir', '--config'],
  },
  effect(scan, { argv }) {
    const program = argv[scan.inner] ?? '';
    // `env:program` is one word, so that the program has no place of its own to rewrite.
    if (!/^[\w.+-]+:/.test(program)) return {};
    const [name, rest] = program.split(/:(.*)/s) as [string, string];
    const message = `the command behind ${name}: was not read`;
    const help = `write hatch -e ${name} run ${rest}`;
    return {
      inner: undefined,
      diagnostics: [note('unread-command', message, { location: `argv[${scan.inner}]`, help })],
    };
  },
});
