import { note, ok } from '../../core/index.ts';
import type { Dialect } from '../dialect.ts';
import { programName } from '../scan-options.ts';

/** Programs with many options and one command behind them: profilers, tracers, containers that share the file system. */
const AROUND: Readonly<Record<string, readonly string[]>> = {
  nsys: ['profile', 'launch'],
  'py-spy': ['record', 'top'],
  perf: ['record', 'stat', 'trace'],
  apptainer: ['exec', 'run'],
  singularity: ['exec', 'run'],
  ncu: [],
  nvprof: [],
  strace: [],
  'compute-sanitizer': [],
  'systemd-run': [],
  cgexec: [],
  prlimit: [],
  flock: [],
  unbuffer: [],
  caffeinate: [],
};

/** What is run under them is found by the name of its program, whatever options stand in between. */
export const around: Dialect = {
  id: 'around',
  kind: 'wrapper',
  title: 'a program around another',
  docs: 'https://docs.nvidia.com/nsight-systems/UserGuide/index.html',
  detect({ argv, index, target, engine }) {
    if (target || engine || index + 1 >= argv.length) return undefined;
    return Object.hasOwn(AROUND, programName(argv[index]!)) ? { from: index, to: index + 1 } : undefined;
  },
  read({ from }, { argv }) {
    const name = programName(argv[from]!);
    const subcommand = AROUND[name]!.find((word) => argv[from + 1] === word);
    const label = subcommand ? `${name} ${subcommand}` : name;
    const otherwise = note('unread-command', `the command inside ${label} was not read`, {
      location: `argv[${from}]`,
      help: `put snug behind it: ${label} … snug run -- COMMAND`,
    });
    return ok({
      spec: {},
      detail: undefined,
      label,
      handOn: { kind: 'search', from: from + (subcommand ? 2 : 1), otherwise: [otherwise] },
    });
  },
};
