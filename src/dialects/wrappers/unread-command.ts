import { note, ok } from '../../core/index.ts';
import type { Dialect } from '../dialect.ts';
import { programName } from '../scan-options.ts';
import { unknownProcesses } from './program.ts';

/** Programs that start a command elsewhere or by a text of its own, and how the run can still be fitted. */
const OPAQUE: Readonly<Record<string, string>> = {
  ...each(['sbatch', 'salloc', 'flux', 'qsub', 'bsub'], 'put snug inside the job: NAME … snug run -- COMMAND'),
  ...each(['horovodrun'], 'start the ranks with torchrun or accelerate launch behind snug'),
  ...each(['docker', 'podman', 'nerdctl', 'enroot', 'kubectl', 'ssh'], 'put snug inside: NAME … snug run -- COMMAND'),
  ...each(
    ['bash', 'sh', 'zsh', 'dash', 'fish', 'ksh', 'make', 'just', 'xargs', 'parallel'],
    'put snug before the training command in the script',
  ),
  ...each(
    ['tmux', 'screen', 'script', 'watch', 'gdb', 'memray', 'viztracer'],
    'put snug behind it: NAME … snug run -- COMMAND',
  ),
};

function each(names: readonly string[], help: string): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, help.replace('NAME', name)]));
}

/** Commands that are known to hold another one which is not looked through yet: said, and never misread. */
export const unreadCommand: Dialect = {
  id: 'unread-command',
  kind: 'wrapper',
  title: 'a command inside another',
  docs: 'https://slurm.schedmd.com/srun.html',
  detect({ argv, index, target, engine }) {
    if (target || engine || argv[index] === undefined) return undefined;
    return Object.hasOwn(OPAQUE, programName(argv[index])) ? { from: index, to: argv.length } : undefined;
  },
  read({ from }, { argv }) {
    const name = programName(argv[from]!);
    return ok({
      spec: {},
      detail: undefined,
      label: name,
      processes: unknownProcesses(from),
      unread: [
        {
          key: argv.slice(from).join(' '),
          origin: { kind: 'argv', index: from },
          reason: `the command inside ${name} is not looked through yet`,
        },
      ],
      diagnostics: [
        note('unread-command', `the command inside ${name} was not read`, {
          location: `argv[${from}]`,
          help: OPAQUE[name]!,
        }),
      ],
    });
  },
};
