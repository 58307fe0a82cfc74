import { type Diagnostic, error, fail, note, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Origin } from '../../spec/index.ts';
import type { Unread } from '../contract.ts';
import type { Claim, Position, Processes, Reading, Target } from '../dialect.ts';
import { pythonInvocation } from '../python/index.ts';
import { lastOption, type OptionScan, programName, type SeenOption, scanOptions } from '../scan-options.ts';
import { TORCHRUN_DEFAULT, TORCHRUN_MODULES, TORCHRUN_OPTIONS, variableOf } from './keys.ts';

export interface TorchrunDetail {
  /** Where the number of processes is typed; undefined: nowhere in the command. */
  readonly perNode: SeenOption | undefined;
  /** First token after the launcher's name, where an option can be put. */
  readonly optionsFrom: number;
}

/** First token after `torchrun` or `python -m torch.distributed.run`; undefined: neither. */
export function optionsOfTorchrun(position: Position): number | undefined {
  const token = position.argv[position.index];
  if (token !== undefined && programName(token) === 'torchrun') return position.index + 1;
  const target = pythonInvocation(position)?.target;
  return target?.form === 'module' && TORCHRUN_MODULES.includes(target.name) ? target.argsFrom : undefined;
}

/** Reads the launcher's own options and names what it starts. */
export function readTorchrun(_claim: Claim, position: Position): Result<Reading<TorchrunDetail>> {
  const { argv } = position;
  const optionsFrom = optionsOfTorchrun(position)!;
  const scan = scanOptions(argv, optionsFrom, TORCHRUN_OPTIONS);
  if (scan.stuck) return fail(badOption(argv, scan.stuck));
  const target = targetOf(scan, position);
  if (!target) {
    return fail(
      error('no-script', 'torchrun is given no script', {
        location: `argv[${position.index}]`,
        help: 'write the script after the options: torchrun --nproc-per-node 2 train.py',
      }),
    );
  }
  const invocation = pythonInvocation(position);
  return ok({
    spec: {},
    ...processesOfOptions(scan, position),
    handOn: { kind: 'target', target },
    ...(invocation?.interpreter === undefined ? {} : { python: argv[invocation.interpreter]! }),
    detail: { perNode: lastOption(scan, '--nproc-per-node'), optionsFrom },
  });
}

/** What torchrun's options say about processes, wherever they stand: its own command, or one that passes them on. */
export function processesOfOptions(
  scan: OptionScan,
  position: Position,
): { readonly processes: Processes; readonly unread: readonly Unread[]; readonly diagnostics: readonly Diagnostic[] } {
  const perNode = readPerNode(scan, position);
  const nodes = readNodes(scan, position);
  return {
    processes: { nodes: nodes.value, perNode: perNode.value, distributed: true, origin: perNode.origin },
    unread: unreadOptions(scan),
    diagnostics: [
      ...perNode.diagnostics,
      ...nodes.diagnostics,
      ...tooFewGpus(perNode, position),
      ...hiddenOutput(scan, position),
    ],
  };
}

const WHY = { unknown: 'is no option', ambiguous: 'could be several options', 'no-value': 'needs a value' } as const;

export const badOption = (argv: readonly string[], { index, why }: NonNullable<OptionScan['stuck']>): Diagnostic =>
  error('bad-option', `${argv[index]} ${WHY[why]} of torchrun 2.13`.replace('value of', 'value in'), {
    location: `argv[${index}]`,
    help: "options of the script come after the script's name; torchrun --help lists the launcher's own",
  });

function targetOf(scan: OptionScan, { argv, environment }: Position): Target | undefined {
  const name = argv[scan.next];
  if (name === undefined) return undefined;
  const isOn = (option: string): boolean =>
    lastOption(scan, option) !== undefined || /^[1-9]\d*$/.test(environment[variableOf(option)] ?? '');
  const form = isOn('--module') ? 'module' : isOn('--no-python') && !isOn('--run-path') ? 'program' : 'script';
  return { form, name, index: scan.next, argsFrom: scan.next + 1 };
}

interface Count {
  /** null: cannot be known here. */
  readonly value: number | null;
  readonly origin: Origin;
  readonly diagnostics: readonly Diagnostic[];
}

/** The text of an option as typed, or of its variable. */
function textOf(
  scan: OptionScan,
  option: string,
  { environment }: Position,
): { text: string; origin: Origin } | undefined {
  const seen = lastOption(scan, option);
  if (seen) return { text: seen.value!, origin: { kind: 'argv', index: seen.valueIndex } };
  const name = variableOf(option);
  const text = environment[name];
  return text ? { text, origin: { kind: 'env', name } } : undefined;
}

/** Bit 2 of `Std`: stderr (torch/distributed/elastic/multiprocessing/api.py). One value for all ranks, or `0:1,1:3`. */
const takesStderr = (text: string): boolean => text.split(',').some((part) => /^[23]$/.test(part.split(':').at(-1)!));

/** Ranks that write into files alone die unheard. */
function hiddenOutput(scan: OptionScan, position: Position): readonly Diagnostic[] {
  const redirected = textOf(scan, '--redirects', position);
  if (!redirected || !takesStderr(redirected.text)) return [];
  if (takesStderr(textOf(scan, '--tee', position)?.text ?? '')) return [];
  return [
    warning('hidden-output', 'the ranks write their errors into files, where nobody watches for them', {
      location: formatOrigin(redirected.origin),
      help: '--tee 3 instead of --redirects 3 writes them there and shows them here',
    }),
  ];
}

function readPerNode(scan: OptionScan, position: Position): Count {
  const found = textOf(scan, '--nproc-per-node', position);
  if (!found) return { value: 1, origin: TORCHRUN_DEFAULT, diagnostics: [] };
  const { text, origin } = found;
  if (/^\d+$/.test(text)) return { value: Number(text), origin, diagnostics: [] };
  if (text === 'gpu' || text === 'auto') {
    // Without a GPU `auto` counts CPUs instead, which nobody trains an LLM on.
    const value = position.visibleGpus ? position.visibleGpus : null;
    return { value, origin, diagnostics: [] };
  }
  return { value: null, origin, diagnostics: [notACount(text, '--nproc-per-node', origin)] };
}

/** `MIN:MAX` is read as MIN: with the fewest nodes each GPU holds the most. */
function readNodes(scan: OptionScan, position: Position): Count {
  const found = textOf(scan, '--nnodes', position);
  if (!found) return { value: 1, origin: TORCHRUN_DEFAULT, diagnostics: [] };
  const { text, origin } = found;
  const [, least, most] = /^(\d+)(?::(\d+))?$/.exec(text) ?? [];
  if (least === undefined) return { value: null, origin, diagnostics: [notACount(text, '--nnodes', origin)] };
  const value = Math.max(1, Number(least));
  const elastic = most !== undefined && Number(most) !== Number(least);
  const message = `the number of nodes may change between ${least} and ${most} while the run goes on; read as ${value}`;
  return {
    value,
    origin,
    diagnostics: elastic ? [note('elastic-nodes', message, { location: formatOrigin(origin) })] : [],
  };
}

const notACount = (text: string, option: string, origin: Origin): Diagnostic =>
  warning('not-a-number', `${option} ${text} is no number that can be known here`, {
    location: formatOrigin(origin),
    help: `write the number: ${option} 1`,
  });

function tooFewGpus({ value, origin }: Count, { visibleGpus }: Position): Diagnostic[] {
  if (value === null || visibleGpus === undefined || visibleGpus === 0 || value <= visibleGpus) return [];
  const message = `${value} processes are to share ${visibleGpus} visible GPU${visibleGpus === 1 ? '' : 's'}`;
  const help = `--nproc-per-node ${visibleGpus}`;
  return [warning('too-few-gpus', message, { location: formatOrigin(origin), help })];
}

const READ = new Set(['--nnodes', '--nproc-per-node', '--module', '--no-python', '--run-path']);

const unreadOptions = (scan: OptionScan): readonly Unread[] =>
  scan.options
    .filter(({ name }) => !READ.has(name))
    .map(({ name, index }) => ({ key: name, origin: { kind: 'argv', index }, reason: 'no-effect-on-memory' }));
