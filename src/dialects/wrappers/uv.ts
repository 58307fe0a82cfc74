import { warning } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Position } from '../dialect.ts';
import { lastOption, type OptionTable } from '../scan-options.ts';
import { otherFolder, type WrapperEffect, type WrapperScan, wrapper } from './wrapper.ts';

const DOCS = 'https://docs.astral.sh/uv/reference/cli/#uv-run';

const OPTIONS: OptionTable = {
  // `-m module` is read as the interpreter's own.
  stops: ['-m', '--module'],
  flags: [
    ...['-s|--script', '--gui-script', '--isolated', '--active', '--no-active', '--no-sync', '--locked', '--frozen'],
    ...['--all-extras', '--no-all-extras', '--all-groups', '--no-dev', '--dev', '--only-dev', '--no-default-groups'],
    ...['--no-editable', '--inexact', '--exact', '--no-env-file', '--all-packages', '--no-project', '-n|--no-cache'],
    ...['-U|--upgrade', '--reinstall', '--compile-bytecode', '--no-build-isolation', '--no-sources', '--no-build'],
    ...['--no-binary', '--refresh', '--managed-python', '--no-managed-python', '--no-python-downloads', '-q|--quiet'],
    ...['-v|--verbose', '--native-tls', '--system-certs', '--offline', '--no-progress', '--no-config', '--no-index'],
  ],
  values: [
    ...['--extra', '--no-extra', '--group', '--no-group', '--only-group', '--env-file', '-w|--with', '--with-editable'],
    ...['--with-requirements', '-p|--python', '--package', '--project', '--directory', '--index', '--default-index'],
    ...['-i|--index-url', '--extra-index-url', '-f|--find-links', '-P|--upgrade-package', '--reinstall-package'],
    ...['--index-strategy', '--keyring-provider', '--resolution', '--prerelease', '--fork-strategy', '--exclude-newer'],
    ...[
      '--exclude-newer-package',
      '--link-mode',
      '-C|--config-setting',
      '--config-settings-package',
      '--no-sources-package',
    ],
    ...[
      '--no-build-isolation-package',
      '--no-build-package',
      '--no-binary-package',
      '--refresh-package',
      '--cache-dir',
    ],
    ...['--color', '--allow-insecure-host', '--config-file', '--python-platform', '--python-preference', '--from'],
    ...['-c|--constraints', '-b|--build-constraints', '--overrides', '--torch-backend', '--upgrade-group'],
  ],
};

/** `uv run [options] (program | script.py | -m module) …`; what comes after is left to the launchers, `-m` too. */
export const uvRun = wrapper({ id: 'uv', title: 'uv run', docs: DOCS, words: ['uv', 'run'], options: OPTIONS, effect });

/** `uvx [--from package] tool …`. */
export const uvx = wrapper({ id: 'uvx', title: 'uvx', docs: DOCS, words: ['uvx'], options: OPTIONS, effect });

export const uvToolRun = wrapper({
  id: 'uv-tool',
  title: 'uv tool run',
  docs: DOCS,
  words: ['uv', 'tool', 'run'],
  options: OPTIONS,
  effect,
});

function effect(scan: WrapperScan, position: Position, context: ReadContext): WrapperEffect {
  const python = lastOption(scan, '--python')?.value;
  const folder = lastOption(scan, '--directory');
  const files = scan.options.filter(({ name }) => name === '--env-file');
  const isolated = lastOption(scan, '--no-env-file') !== undefined;
  const read = isolated ? [] : files.map(({ value, valueIndex }) => readEnvFile(value!, valueIndex, position, context));
  return {
    ...(python ? { python: /^[\d.]+$/.test(python) ? `python${python}` : python } : {}),
    env: Object.assign({}, ...read.map(({ variables }) => variables)),
    diagnostics: [
      ...(folder ? [otherFolder('uv run', folder.value!, folder.valueIndex)] : []),
      ...read.flatMap(({ diagnostics }) => diagnostics),
    ],
  };
}

/** Variables that are set already win over those of the file. */
function readEnvFile(path: string, index: number, position: Position, context: ReadContext) {
  const source = context.source(path);
  if (!source.ok) {
    const message = `the variables of ${path} could not be read`;
    return { variables: {}, diagnostics: [warning('env-file', message, { location: `argv[${index}]` })] };
  }
  const variables = Object.fromEntries(
    source.value.text.split(/\r?\n/).flatMap((line) => {
      const match = /^\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(?:'([^']*)'|"([^"]*)"|([^#]*?))\s*(?:#.*)?$/.exec(line);
      if (!match || position.environment[match[1]!] !== undefined) return [];
      return [[match[1]!, match[2] ?? match[3] ?? match[4] ?? '']];
    }),
  );
  return { variables, diagnostics: [] };
}
