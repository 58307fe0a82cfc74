import { type Diagnostic, ok, warning } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Claim, Dialect, Position, Reading } from '../dialect.ts';
import { type OptionScan, type OptionTable, programName, scanOptions } from '../scan-options.ts';
import { readAssignments } from './assignments.ts';
import { unknownProcesses } from './program.ts';

/** A program that starts another one and adds no meaning of its own to what is trained. */
export interface WrapperSpec {
  readonly id: string;
  readonly title: string;
  readonly docs: string;
  /** Words that begin it: `nohup`, or with a subcommand `poetry run` (options may stand between the words). */
  readonly words: readonly string[];
  readonly options: OptionTable;
  /** Operands before the inner command: `timeout` has one, the duration. */
  readonly operands?: number;
  /** Takes `NAME=value` words before the inner command. */
  readonly assigns?: boolean;
  /** What it changes for the inner command. */
  readonly effect?: (scan: WrapperScan, position: Position, context: ReadContext) => WrapperEffect;
  /** Name in `LaunchReading.wrappers`; default: the words. */
  readonly label?: (scan: WrapperScan, position: Position) => string;
}

/** A wrapper as typed: its options, its operands and where the inner command begins. */
export interface WrapperScan extends OptionScan {
  readonly operands: readonly string[];
  readonly variables: Readonly<Record<string, string>>;
  readonly inner: number;
}

export interface WrapperEffect extends Pick<Reading, 'env' | 'python' | 'unread' | 'diagnostics'> {
  /** The inner command begins elsewhere (behind assignments), or cannot be found. */
  readonly inner?: number | undefined;
}

/** Makes the dialect of one wrapper. Not one: the bare word with nothing to start, which stays what it is. */
export function wrapper(spec: WrapperSpec): Dialect {
  return {
    id: spec.id,
    kind: 'wrapper',
    title: spec.title,
    docs: spec.docs,
    detect: (position) => detectWrapper(spec, position),
    read(_claim, position, context) {
      const scan = scanWrapper(spec, position)!;
      const effect = spec.effect?.(scan, position, context) ?? {};
      const inner = 'inner' in effect ? effect.inner : scan.inner;
      const stuck = scan.stuck && unknownOption(spec, position, scan.stuck);
      const { inner: _inner, ...rest } = effect;
      return ok<Reading>({
        spec: {},
        detail: undefined,
        label: spec.label?.(scan, position) ?? spec.words.join(' '),
        ...rest,
        ...(scan.stuck
          ? { handOn: { kind: 'search', from: scan.stuck.index + 1, otherwise: stuck ? [stuck] : [] } }
          : inner === undefined
            ? { processes: unknownProcesses(position.index) }
            : { handOn: { kind: 'command', index: inner } }),
      });
    },
  };
}

function detectWrapper(spec: WrapperSpec, position: Position): Claim | undefined {
  if (position.target || position.engine) return undefined;
  const scan = scanWrapper(spec, position);
  if (!scan) return undefined;
  if (scan.stuck) return { from: position.index, to: scan.stuck.index };
  return scan.inner < position.argv.length ? { from: position.index, to: scan.inner } : undefined;
}

function scanWrapper(
  { words, options, operands = 0, assigns = false }: WrapperSpec,
  { argv, index }: Position,
): WrapperScan | undefined {
  const [program, ...subcommands] = words;
  if (argv[index] === undefined || programName(argv[index]) !== program) return undefined;
  let scan = scanOptions(argv, index + 1, options);
  const seen = [...scan.options];
  for (const word of subcommands) {
    if (scan.stuck || argv[scan.next] !== word) return undefined;
    scan = scanOptions(argv, scan.next + 1, options);
    seen.push(...scan.options);
  }
  const end = scan.next + operands;
  const { variables, next: inner } = assigns ? readAssignments(argv, end) : { variables: {}, next: end };
  return { ...scan, options: seen, operands: argv.slice(scan.next, end), variables, inner };
}

function unknownOption(spec: WrapperSpec, { argv }: Position, stuck: NonNullable<OptionScan['stuck']>): Diagnostic {
  const option = argv[stuck.index]!;
  const name = spec.words.join(' ');
  return warning(
    'wrapper-option',
    `${option} is no option of ${name} that is known here, so the command behind it was not read`,
    {
      location: `argv[${stuck.index}]`,
      help: `put snug behind it: ${name} … snug run -- COMMAND`,
    },
  );
}

/** Why a path inside the command means another file than it would here. */
export const otherFolder = (name: string, folder: string, index: number): Diagnostic =>
  warning('other-folder', `${name} starts the command in ${folder}, where its files were not looked for`, {
    location: `argv[${index}]`,
    help: `cd ${folder} first, and leave the option out`,
  });
