import { note } from '../../core/index.ts';
import { lastOption } from '../scan-options.ts';
import { otherFolder, wrapper } from './wrapper.ts';

/** `env [-i] [-u NAME] NAME=value command`. */
export const env = wrapper({
  id: 'env',
  title: 'env',
  docs: 'https://www.gnu.org/software/coreutils/manual/html_node/env-invocation.html',
  words: ['env'],
  options: {
    flags: ['-|-i|--ignore-environment', '-0|--null', '-v|--debug', '--list-signal-handling'],
    values: ['-u|--unset', '-C|--chdir', '-a|--argv0'],
    stops: ['-S', '--split-string'],
    optional: ['--default-signal', '--ignore-signal', '--block-signal'],
  },
  assigns: true,
  effect(scan, { argv, environment }) {
    if (/^(?:-S|--split-string)/.test(argv[scan.inner] ?? '')) {
      const message = 'the command inside the text of env -S was not read';
      const help = 'write its words as words of their own';
      return {
        inner: undefined,
        diagnostics: [note('unread-command', message, { location: `argv[${scan.inner}]`, help })],
      };
    }
    const cleared = lastOption(scan, '--ignore-environment') ? Object.keys(environment) : [];
    const unset = scan.options.filter(({ name }) => name === '--unset').map(({ value }) => value!);
    const folder = lastOption(scan, '--chdir');
    return {
      env: { ...Object.fromEntries([...cleared, ...unset].map((name) => [name, undefined])), ...scan.variables },
      ...(folder ? { diagnostics: [otherFolder('env', folder.value!, folder.valueIndex)] } : {}),
    };
  },
});
