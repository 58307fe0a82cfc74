import { type Diagnostic, error, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Origin } from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Claim, Position, Processes, Reading, Target } from '../dialect.ts';
import { pythonInvocation } from '../python/index.ts';
import { lastOption, type OptionScan, programName, type SeenOption, scanOptions } from '../scan-options.ts';
import { filterHosts, type Hosts, parseHostfile } from './hosts.ts';
import { DEEPSPEED_OPTIONS, DEFAULT_HOSTFILE, READ_OPTIONS } from './keys.ts';

export interface DeepSpeedLaunchDetail {
  /** Where the number of GPUs a node is typed; undefined: nowhere. */
  readonly perNode: SeenOption | undefined;
  /** `--include` or `--exclude` chooses the GPUs one by one. */
  readonly filtered: boolean;
  /** First token after the launcher's name, where an option can be put. */
  readonly optionsFrom: number;
}

const MODULES: readonly string[] = ['deepspeed.launcher.runner'];

/** First token after `deepspeed`, `ds` or `python -m deepspeed.launcher.runner`; undefined: something else. */
export function optionsOfDeepSpeed(position: Position): number | undefined {
  const token = position.argv[position.index];
  if (token !== undefined && /^(?:deepspeed(?:\.pt)?|ds)$/.test(programName(token))) return position.index + 1;
  const target = pythonInvocation(position)?.target;
  return target?.form === 'module' && MODULES.includes(target.name) ? target.argsFrom : undefined;
}

/** Reads the launcher's own options and names what it starts. `--deepspeed FILE` behind the script is the trainer's. */
export function readDeepSpeedLaunch(
  _claim: Claim,
  position: Position,
  context: ReadContext,
): Result<Reading<DeepSpeedLaunchDetail>> {
  const { argv } = position;
  const optionsFrom = optionsOfDeepSpeed(position)!;
  const scan = scanOptions(argv, optionsFrom, DEEPSPEED_OPTIONS);
  if (scan.stuck) return fail(badOption(argv, scan.stuck));
  const target = targetOf(scan, argv);
  if (!target) return fail(noScript(position.index));
  const hosts = readHosts(scan, position, context);
  if (!hosts.ok) return hosts;
  const counted = countProcesses(hosts.value, scan, position);
  if (!counted.ok) return counted;
  const interpreter = pythonInvocation(position)?.interpreter;
  return ok({
    spec: {},
    processes: counted.value.processes,
    handOn: { kind: 'target', target },
    ...(interpreter === undefined ? {} : { python: argv[interpreter]! }),
    unread: scan.options
      .filter(({ name }) => !READ_OPTIONS.has(name))
      .map(({ name, index }) => ({ key: name, origin: { kind: 'argv', index }, reason: 'no-effect-on-memory' })),
    diagnostics: [...counted.value.diagnostics, ...autotuning(scan)],
    detail: {
      perNode: lastOption(scan, '--num_gpus'),
      filtered: lastOption(scan, '--include') !== undefined || lastOption(scan, '--exclude') !== undefined,
      optionsFrom,
    },
  });
}

const WHY = {
  unknown: 'is no option of the deepspeed launcher',
  ambiguous: 'could be several options of the deepspeed launcher',
  'no-value': 'needs a value',
} as const;

const badOption = (argv: readonly string[], { index, why }: NonNullable<OptionScan['stuck']>): Diagnostic =>
  error('bad-option', `${argv[index]} ${WHY[why]}`, {
    location: `argv[${index}]`,
    help: "options of the script come after the script's name: deepspeed --num_gpus 2 train.py --deepspeed ds.json",
  });

const noScript = (index: number): Diagnostic =>
  error('no-script', 'deepspeed is given no script', {
    location: `argv[${index}]`,
    help: 'write the script after the options: deepspeed --num_gpus 2 train.py',
  });

function targetOf(scan: OptionScan, argv: readonly string[]): Target | undefined {
  const name = argv[scan.next];
  if (name === undefined) return undefined;
  const form = lastOption(scan, '--module') ? 'module' : lastOption(scan, '--no_python') ? 'program' : 'script';
  return { form, name, index: scan.next, argsFrom: scan.next + 1 };
}

interface Pool {
  readonly hosts: Hosts;
  readonly origin: Origin;
}

/** The hosts of the hostfile; this machine where there is none. A missing hostfile is no error, not even one that is named. */
function readHosts(scan: OptionScan, position: Position, context: ReadContext): Result<Pool> {
  const named = lastOption(scan, '--hostfile');
  const path = named?.value ?? DEFAULT_HOSTFILE;
  const absolute = path.startsWith('/') ? path : `${context.cwd}/${path}`;
  if (context.files.info(absolute)?.kind === 'file') {
    const source = context.source(path);
    if (!source.ok) return source;
    const hosts = parseHostfile(source.value.text, path);
    return hosts.ok ? ok({ hosts: hosts.value, origin: { kind: 'file', path, line: 1 } }) : hosts;
  }
  const include = lastOption(scan, '--include')?.value;
  // Hosts that a hostfile elsewhere will hold: only what `--include` itself says of them is known here.
  const elsewhere = named && include ? [...new Set(include.split('@').map((part) => part.split(':')[0]!))] : [];
  if (elsewhere.length > 0) {
    const origin = { kind: 'argv', index: named!.valueIndex } as const;
    return ok({ hosts: new Map(elsewhere.map((host) => [host, undefined])), origin });
  }
  const origin: Origin = visibleOrigin(position);
  return ok({ hosts: new Map([['localhost', position.visibleGpus || undefined]]), origin });
}

const visibleOrigin = ({ visibleGpus }: Position): Origin =>
  visibleGpus
    ? { kind: 'derived', from: `${visibleGpus} visible GPU${visibleGpus === 1 ? '' : 's'}` }
    : { kind: 'derived', from: 'the visible GPUs, unknown here' };

interface Counted {
  readonly processes: Processes;
  readonly diagnostics: readonly Diagnostic[];
}

/** Nodes and processes on each. Source: runner.py `main`: filters and numbers exclude each other. */
function countProcesses(pool: Pool, scan: OptionScan, position: Position): Result<Counted> {
  const [include, exclude] = [lastOption(scan, '--include'), lastOption(scan, '--exclude')];
  const [nodes, gpus] = [lastOption(scan, '--num_nodes'), lastOption(scan, '--num_gpus')];
  const filter = include ?? exclude;
  if (filter && (include && exclude ? true : isCount(nodes) || isCount(gpus))) {
    return fail(
      error('bad-option', 'DeepSpeed takes only one of --include, --exclude and --num_nodes with --num_gpus', {
        location: `argv[${filter.index}]`,
        help: 'leave the others out',
      }),
    );
  }
  if (filter) {
    const left = filterHosts(pool.hosts, filter.value!, include ? 'include' : 'exclude');
    const problem = typeof left === 'string' ? left : left.size === 0 ? 'no GPU is left' : undefined;
    if (typeof left === 'string' || problem !== undefined) {
      const message = `${filter.name} ${filter.value}: ${problem}, and DeepSpeed stops at it`;
      return fail(error('bad-option', message, { location: `argv[${filter.valueIndex}]`, help: HELP }));
    }
    return ok(counted(left, { kind: 'argv', index: filter.valueIndex }, position));
  }
  const numbers = [nodes, gpus].filter((option) => option && !/^-?\d+$/.test(option.value!));
  const hosts = new Map([...pool.hosts].slice(0, isCount(nodes) ? Number(nodes!.value) : undefined));
  const perNode = isCount(gpus) ? Number(gpus!.value) : undefined;
  const origin: Origin = perNode === undefined ? pool.origin : { kind: 'argv', index: gpus!.valueIndex };
  if (numbers.length > 0) {
    const [first] = numbers;
    const message = `${first!.name} ${first!.value} is no number that can be known here`;
    const at = { kind: 'argv', index: first!.valueIndex } as const;
    return ok({
      processes: { nodes: null, perNode: null, distributed: true, origin: at },
      diagnostics: [warning('not-a-number', message, { location: formatOrigin(at), help: `${first!.name} 2` })],
    });
  }
  const chosen = perNode === undefined ? hosts : new Map([...hosts.keys()].map((host) => [host, perNode]));
  // Without the hostfile of the real machines there are as many nodes as somebody says.
  const asked = isCount(nodes) ? Number(nodes!.value) : hosts.size;
  const extra = Array.from(
    { length: Math.max(0, asked - hosts.size) },
    (_, at) => [`node ${at + 2}`, perNode] as const,
  );
  return ok(counted(new Map([...chosen, ...extra]), origin, position));
}

const HELP = '--include worker-0@worker-1:0,2, with the hosts of the hostfile, or localhost:0,1 without one';

const isCount = (option: SeenOption | undefined): boolean => option !== undefined && /^[1-9]\d*$/.test(option.value!);

function counted(hosts: Hosts, origin: Origin, { visibleGpus }: Position): Counted {
  const slots = [...hosts.values()];
  const fewest = slots.includes(undefined) ? null : Math.min(...(slots as number[]));
  const uneven = fewest !== null && slots.some((count) => count !== fewest);
  const processes = { nodes: hosts.size, perNode: fewest, distributed: true, origin };
  const location = formatOrigin(origin);
  const tooFew = fewest !== null && hosts.size === 1 && visibleGpus && fewest > visibleGpus;
  const message = `${fewest} processes are to share ${visibleGpus} visible GPU${visibleGpus === 1 ? '' : 's'}`;
  return {
    processes,
    diagnostics: [
      ...(uneven
        ? [
            warning('uneven-processes', `the hosts have different numbers of GPUs; ${fewest} on each are counted`, {
              location,
            }),
          ]
        : []),
      ...(tooFew ? [warning('too-few-gpus', message, { location, help: `--num_gpus ${visibleGpus}` })] : []),
    ],
  };
}

/** The tuner starts the script many times with settings of its own. */
function autotuning(scan: OptionScan): Diagnostic[] {
  const option = lastOption(scan, '--autotuning');
  if (!option?.value) return [];
  const message = "DeepSpeed's autotuner tries settings of its own, which are not estimated";
  return [warning('not-estimated', message, { location: `argv[${option.index}]`, help: 'leave --autotuning out' })];
}
