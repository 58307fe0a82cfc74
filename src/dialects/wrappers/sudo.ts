import { lastOption } from '../scan-options.ts';
import { otherFolder, wrapper } from './wrapper.ts';

/** What sudo's default policy leaves of the environment. */
const KEPT = /^(?:PATH|HOME|SHELL|TERM|LANG|LC_.*|LANGUAGE|DISPLAY|XAUTHORITY|USER|LOGNAME|MAIL|TZ|COLORS|HOSTNAME)$/;

/** `sudo [-E] [-u user] [NAME=value] command`: without -E the caller's variables (CUDA_VISIBLE_DEVICES!) do not get through. */
export const sudo = wrapper({
  id: 'sudo',
  title: 'sudo',
  docs: 'https://www.sudo.ws/docs/man/sudo.man/',
  words: ['sudo'],
  options: {
    flags: [
      '-A|--askpass',
      '-b|--background',
      '-B|--bell',
      '-H|--set-home',
      '-i|--login',
      '-k|--reset-timestamp',
      '-n|--non-interactive',
      '-N|--no-update',
      '-P|--preserve-groups',
      '-S|--stdin',
      '-s|--shell',
    ],
    values: [
      '-C|--close-from',
      '-D|--chdir',
      '-g|--group',
      '-h|--host',
      '-p|--prompt',
      '-R|--chroot',
      '-r|--role',
      '-t|--type',
      '-T|--command-timeout',
      '-u|--user',
    ],
    optional: ['-E|--preserve-env'],
  },
  assigns: true,
  effect(scan, { environment }) {
    const preserved = scan.options.filter(({ name }) => name === '--preserve-env');
    const all = preserved.some(({ value }) => value === undefined);
    const named = new Set(preserved.flatMap(({ value }) => value?.split(',') ?? []));
    const dropped = all ? [] : Object.keys(environment).filter((name) => !KEPT.test(name) && !named.has(name));
    const folder = lastOption(scan, '--chdir');
    return {
      env: { ...Object.fromEntries(dropped.map((name) => [name, undefined])), ...scan.variables },
      ...(folder ? { diagnostics: [otherFolder('sudo', folder.value!, folder.valueIndex)] } : {}),
    };
  },
});
