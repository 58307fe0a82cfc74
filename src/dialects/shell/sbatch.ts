import { parseBytes } from '../../core/index.ts';
import type { Allocation } from '../contract.ts';
import { type OptionScan, type OptionTable, scanOptions } from '../scan-options.ts';
import { lexShell } from './lexer.ts';
import { expandText, Variables } from './variables.ts';

/** Options of `sbatch`, on its command line and in `#SBATCH` lines. Source: https://slurm.schedmd.com/sbatch.html. */
export const SBATCH_OPTIONS: OptionTable = {
  flags: [
    ...['-H|--hold', '-k|--no-kill', '-O|--overcommit', '-s|--oversubscribe', '-Q|--quiet', '-v|--verbose'],
    ...['-W|--wait', '--contiguous', '--ignore-pbs', '--parsable', '--reboot', '--requeue', '--no-requeue'],
    ...['--spread-job', '--test-only', '--use-min-nodes', '-h|--help', '-V|--version'],
  ],
  values: [
    ...['-A|--account', '-a|--array', '-b|--begin', '-B|--extra-node-info', '-C|--constraint', '-c|--cpus-per-task'],
    ...['-d|--dependency', '-D|--chdir', '-e|--error', '-F|--nodefile', '-G|--gpus', '-i|--input', '-J|--job-name'],
    ...['-L|--licenses', '-M|--clusters', '-m|--distribution', '-N|--nodes', '-n|--ntasks', '-o|--output'],
    ...['-p|--partition', '-q|--qos', '-S|--core-spec', '-t|--time', '-w|--nodelist', '-x|--exclude'],
    ...['--gres', '--gpus-per-node', '--gpus-per-task', '--gpus-per-socket', '--ntasks-per-node', '--ntasks-per-gpu'],
    ...['--mem', '--mem-per-gpu', '--mem-per-cpu', '--cpus-per-gpu', '--mail-type', '--mail-user', '--comment'],
    ...[
      '--export',
      '--export-file',
      '--signal',
      '--reservation',
      '--wrap',
      '--tmp',
      '--time-min',
      '--threads-per-core',
    ],
    ...[
      '--ntasks-per-core',
      '--ntasks-per-socket',
      '--open-mode',
      '--hint',
      '--gpu-bind',
      '--gpu-freq',
      '--gres-flags',
    ],
    ...[
      '--kill-on-invalid-dep',
      '--mincpus',
      '--network',
      '--nice',
      '--power',
      '--priority',
      '--profile',
      '--switches',
    ],
    ...['--wckey', '--uid', '--gid', '--batch', '--bb', '--bbf', '--cluster-constraint', '--container', '--prefer'],
  ],
  optional: ['--exclusive', '--get-user-env', '--propagate'],
};

/** The words of the `#SBATCH` lines. Slurm reads them up to the first command. */
export function directivesOf(text: string): readonly { readonly words: readonly string[]; readonly line: number }[] {
  const directives: { words: readonly string[]; line: number }[] = [];
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    if (line.trim() !== '' && !line.startsWith('#')) break;
    const rest = /^#SBATCH\s+(.*)$/.exec(line)?.[1];
    if (rest === undefined) continue;
    const none = new Variables({}, []);
    const words = lexShell(rest).flatMap((token) =>
      token.kind === 'word' ? [expandText(token, none) ?? rest.slice(token.start, token.end)] : [],
    );
    directives.push({ words, line: at + 1 });
  }
  return directives;
}

/** What a job asks Slurm for: the options of the command line over those of the script. */
export function allocationOf(text: string, commandLine: OptionScan | undefined, name: string): Allocation | undefined {
  const values = new Map<string, { value: string; place: string }>();
  for (const { words, line } of directivesOf(text)) {
    for (const option of scanOptions(words, 0, SBATCH_OPTIONS).options) {
      if (option.value !== undefined) values.set(option.name, { value: option.value, place: `${name}:${line}` });
    }
  }
  for (const option of commandLine?.options ?? []) {
    if (option.value !== undefined) values.set(option.name, { value: option.value, place: `argv[${option.index}]` });
  }
  if (values.size === 0) return undefined;
  const number = (option: string): number | undefined => {
    // `--nodes=2-4`: with the fewest nodes each GPU holds the most.
    const count = /^(\d+)(?:-\d+)?$/.exec(values.get(option)?.value ?? '')?.[1];
    return count === undefined || Number(count) === 0 ? undefined : Number(count);
  };
  const nodes = number('--nodes') ?? 1;
  const tasksPerNode = number('--ntasks-per-node') ?? divided(number('--ntasks'), nodes);
  const gpus = gpusOf(values, nodes, tasksPerNode ?? 1);
  const memory = memoryOf(values, gpus?.count, number('--cpus-per-task'), tasksPerNode ?? 1);
  return {
    nodes,
    ...(tasksPerNode === undefined ? {} : { tasksPerNode }),
    ...(number('--cpus-per-task') === undefined ? {} : { cpusPerTask: number('--cpus-per-task')! }),
    ...(gpus ? { gpusPerNode: gpus.count, ...(gpus.type ? { gpuType: gpus.type } : {}) } : {}),
    ...(memory ? { hostRamBytes: memory.bytes, hostRamPlace: memory.place } : {}),
  };
}

type Values = ReadonlyMap<string, { readonly value: string; readonly place: string }>;

const divided = (count: number | undefined, by: number): number | undefined =>
  count === undefined ? undefined : Math.max(1, Math.ceil(count / by));

/** GPUs of one node: `gpu:a100:4`, `a100:4`, `4`. */
function gpusOf(values: Values, nodes: number, tasks: number): { count: number; type?: string } | undefined {
  const gres = values
    .get('--gres')
    ?.value.split(',')
    .find((part) => /^(?:gres[:/])?gpu\b/.test(part));
  const forms: readonly (readonly [text: string | undefined, share: number])[] = [
    [gres?.replace(/^(?:gres[:/])?gpu:?/, '').replace(/\(.*$/, ''), 1],
    [values.get('--gpus-per-node')?.value, 1],
    [values.get('--gpus-per-task')?.value, tasks],
    [values.get('--gpus')?.value, 1 / nodes],
  ];
  for (const [text, share] of forms) {
    if (text === undefined) continue;
    const [, type, count] = /^(?:([A-Za-z][\w.-]*)(?::|$))?(\d*)$/.exec(text) ?? [];
    if (type === undefined && count === undefined) continue;
    return { count: Math.max(1, Math.ceil(Number(count || 1) * share)), ...(type ? { type } : {}) };
  }
  return undefined;
}

/** RAM that a node may use; megabytes without a unit, 0 all of it. */
function memoryOf(
  values: Values,
  gpus: number | undefined,
  cpus: number | undefined,
  tasks: number,
): { bytes: number; place: string } | undefined {
  const forms: readonly (readonly [option: string, times: number | undefined])[] = [
    ['--mem', 1],
    ['--mem-per-gpu', gpus],
    ['--mem-per-cpu', cpus === undefined ? undefined : cpus * tasks],
  ];
  for (const [option, times] of forms) {
    const given = values.get(option);
    const [, amount, unit] = /^(\d+)([KMGT]?)B?$/i.exec(given?.value ?? '') ?? [];
    if (!given || amount === undefined || times === undefined || Number(amount) === 0) continue;
    const bytes = parseBytes(`${amount}${(unit || 'M').toUpperCase()}iB`);
    if (bytes !== undefined) return { bytes: bytes * times, place: `${option} at ${given.place}` };
  }
  return undefined;
}

/** What Slurm will set for the job, as far as its options say. */
export function slurmVariables(allocation: Allocation | undefined): Readonly<Record<string, string>> {
  if (!allocation) return {};
  const { nodes, tasksPerNode, gpusPerNode, cpusPerTask } = allocation;
  return {
    SLURM_NNODES: String(nodes),
    SLURM_JOB_NUM_NODES: String(nodes),
    ...(gpusPerNode === undefined
      ? {}
      : { SLURM_GPUS_ON_NODE: String(gpusPerNode), SLURM_GPUS_PER_NODE: String(gpusPerNode) }),
    ...(tasksPerNode === undefined
      ? {}
      : {
          SLURM_NTASKS_PER_NODE: String(tasksPerNode),
          SLURM_NTASKS: String(tasksPerNode * nodes),
          SLURM_NPROCS: String(tasksPerNode * nodes),
        }),
    ...(cpusPerTask === undefined ? {} : { SLURM_CPUS_PER_TASK: String(cpusPerTask) }),
  };
}
