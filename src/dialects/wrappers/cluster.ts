import { type Diagnostic, warning } from '../../core/index.ts';
import { lastOption } from '../scan-options.ts';
import { otherFolder, type WrapperScan, wrapper } from './wrapper.ts';

/** `srun [options] command`: every task of the job step starts the command. */
export const srun = wrapper({
  id: 'srun',
  title: 'srun',
  docs: 'https://slurm.schedmd.com/srun.html',
  words: ['srun'],
  options: {
    flags: [
      ...['-E|--preserve-env', '-H|--hold', '-k|--no-kill', '-l|--label', '-O|--overcommit', '-s|--oversubscribe'],
      ...['-Q|--quiet', '-u|--unbuffered', '-v|--verbose', '-X|--disable-status', '-Z|--no-allocate', '--overlap'],
      ...['--exact', '--contiguous', '--multi-prog', '--reboot', '--spread-job', '--use-min-nodes', '--interactive'],
      ...['--test-only', '-h|--help'],
    ],
    values: [
      ...['-A|--account', '-b|--begin', '-C|--constraint', '-c|--cpus-per-task', '-d|--dependency', '-D|--chdir'],
      ...[
        '-e|--error',
        '-G|--gpus',
        '-i|--input',
        '-I|--immediate',
        '-J|--job-name',
        '-L|--licenses',
        '-m|--distribution',
      ],
      ...['-M|--clusters', '-N|--nodes', '-n|--ntasks', '-o|--output', '-p|--partition', '-q|--qos', '-r|--relative'],
      ...['-S|--core-spec', '-t|--time', '-T|--threads', '-w|--nodelist', '-W|--wait', '-x|--exclude', '--gres'],
      ...['--gpus-per-node', '--gpus-per-task', '--gpus-per-socket', '--ntasks-per-node', '--ntasks-per-gpu'],
      ...['--ntasks-per-core', '--ntasks-per-socket', '--cpus-per-gpu', '--mem', '--mem-per-gpu', '--mem-per-cpu'],
      ...['--mem-bind', '--cpu-bind', '--gpu-bind', '--gpu-freq', '--gres-flags', '--mpi', '--export', '--export-file'],
      ...[
        '--jobid',
        '--het-group',
        '--hint',
        '--kill-on-bad-exit',
        '--open-mode',
        '--prolog',
        '--epilog',
        '--task-prolog',
      ],
      ...['--task-epilog', '--signal', '--comment', '--reservation', '--tmp', '--time-min', '--threads-per-core'],
      ...['--container', '--container-image', '--container-mounts', '--container-workdir', '--container-name'],
      ...['--container-env', '--network', '--nice', '--priority', '--profile', '--mail-type', '--mail-user', '--bcast'],
      ...['--propagate', '--pty-window', '--tres-per-task', '--slurmd-debug', '--accel-bind', '--prefer', '--mincpus'],
    ],
    optional: ['--exclusive', '--pty', '--kill-on-bad-exit', '--no-container-mount-home', '--container-mount-home'],
  },
  effect(scan, { argv }) {
    const folder = lastOption(scan, '--chdir');
    return {
      diagnostics: [
        ...(folder ? [otherFolder('srun', folder.value!, folder.valueIndex)] : []),
        ...ranksWithoutLauncher(scan, argv),
      ],
    };
  },
});

/** Slurm numbers its tasks in variables of its own, which transformers does not look at. */
function ranksWithoutLauncher(scan: WrapperScan, argv: readonly string[]): Diagnostic[] {
  const option = lastOption(scan, '--ntasks-per-node') ?? lastOption(scan, '--ntasks');
  const plain = /^(?:.*\/)?python[\d.]*$/.test(argv[scan.inner] ?? '') && argv[scan.inner + 1] !== '-m';
  if (!plain || !option || !/^(?:[2-9]|[1-9]\d+)$/.test(option.value ?? '')) return [];
  const message = `srun starts ${option.value} tasks, each of which trains by itself unless the script reads Slurm's variables`;
  return [
    warning('tasks-without-ranks', message, {
      location: `argv[${option.index}]`,
      help: 'one task a node, and torchrun or accelerate launch in front of the script',
    }),
  ];
}

/** `mpirun -np 4 command`: Open MPI tells each process how many there are. */
export const mpirun = mpi('mpirun');
export const mpiexec = mpi('mpiexec');
export const orterun = mpi('orterun');

function mpi(program: string) {
  return wrapper({
    id: program,
    title: program,
    docs: 'https://docs.open-mpi.org/en/main/man-openmpi/man1/mpirun.1.html',
    words: [program],
    options: {
      flags: [
        ...[
          '--allow-run-as-root',
          '-allow-run-as-root',
          '-q|--quiet',
          '-v|--verbose',
          '--oversubscribe',
          '-oversubscribe',
        ],
        ...['--display-map', '-display-map', '--tag-output', '-tag-output', '--report-bindings', '-report-bindings'],
        ...['--bynode', '-bynode', '--byslot', '-byslot', '--nooversubscribe', '--timestamp-output', '-l'],
      ],
      values: [
        ...['-np|-n|-c|--n|--np', '-npernode|-N|--npernode', '-ppn|--ppn', '-H|-host|--host', '-hostfile|--hostfile'],
        ...['-machinefile|--machinefile', '-f', '-x', '-wdir|--wdir', '-bind-to|--bind-to', '-map-by|--map-by'],
        ...['-rank-by|--rank-by', '-path|--path', '-prefix|--prefix', '-output-filename|--output-filename', '-cpu-set'],
        ...['-iface', '-bootstrap', '-launcher', '-rf|--rankfile', '-tune|--tune'],
      ],
    },
    effect(scan, { visibleGpus }) {
      const count = (name: string): number | undefined => {
        const text = lastOption(scan, name)?.value;
        return text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
      };
      const mapped = /ppr:(\d+):node/.exec(lastOption(scan, '--map-by')?.value ?? '')?.[1];
      const total = count('--np') ?? visibleGpus;
      const spread = ['--hostfile', '--machinefile', '--host', '-f'].some((name) => lastOption(scan, name));
      const perNode = count('--npernode') ?? count('--ppn') ?? (mapped === undefined ? undefined : Number(mapped));
      const local = perNode ?? (spread ? undefined : total);
      return {
        env: {
          ...Object.fromEntries(scan.options.flatMap(exported)),
          ...(total === undefined ? {} : { OMPI_COMM_WORLD_SIZE: String(total) }),
          ...(local === undefined ? {} : { OMPI_COMM_WORLD_LOCAL_SIZE: String(local) }),
        },
      };
    },
  });
}

/** `-x NAME=value` sets a variable for every process. */
function exported({ name, value }: { readonly name: string; readonly value: string | undefined }): [string, string][] {
  const match = name === '-x' ? /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(value ?? '') : null;
  return match ? [[match[1]!, match[2]!]] : [];
}
