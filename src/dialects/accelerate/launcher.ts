import { error, fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { Claim, Options, Position, Reading, Target } from '../dialect.ts';
import { pythonInvocation } from '../python/index.ts';
import { lastOption, type OptionScan, programName, scanOptions } from '../scan-options.ts';
import { ACCELERATE_MODULES, ACCELERATE_OPTIONS, optionName, READ_OPTIONS } from './keys.ts';
import { type AccelerateDetail, noScript, readAccelerateOptions } from './read.ts';

/** First token after `accelerate launch` in any of its spellings; undefined: something else. */
export function optionsOfAccelerate(position: Position): number | undefined {
  const { argv, index } = position;
  const name = argv[index] === undefined ? undefined : programName(argv[index]);
  if (name === 'accelerate-launch') return index + 1;
  if (name === 'accelerate') return argv[index + 1] === 'launch' ? index + 2 : undefined;
  const target = pythonInvocation(position)?.target;
  if (target?.form !== 'module') return undefined;
  if (ACCELERATE_MODULES.includes(target.name)) return target.argsFrom;
  const commands = target.name === 'accelerate' || target.name === 'accelerate.commands.accelerate_cli';
  return commands && argv[target.argsFrom] === 'launch' ? target.argsFrom + 1 : undefined;
}

/** Reads the command line of the launcher and names what it starts. */
export function readLauncher(
  _claim: Claim,
  position: Position,
  context: ReadContext,
): Result<Reading<AccelerateDetail>> {
  const { argv } = position;
  const optionsFrom = optionsOfAccelerate(position)!;
  const scan = scanOptions(argv, optionsFrom, ACCELERATE_OPTIONS);
  if (scan.stuck) return fail(badOption(argv, scan.stuck));
  const target = targetOf(scan, argv);
  if (!target) return noScript(position.index);
  const read = readAccelerateOptions(optionsIn(scan), position, context);
  if (!read.ok) return read;
  const interpreter = pythonInvocation(position)?.interpreter;
  return ok({
    ...read.value,
    handOn: { kind: 'target', target },
    ...(interpreter === undefined ? {} : { python: argv[interpreter]! }),
    unread: [...(read.value.unread ?? []), ...unreadOptions(scan)],
    detail: { ...read.value.detail, optionsFrom },
  });
}

const WHY = {
  unknown: 'is no option of accelerate launch 1.15',
  ambiguous: 'is no option of accelerate launch 1.15',
  'no-value': 'needs a value',
} as const;

const badOption = (argv: readonly string[], { index, why }: NonNullable<OptionScan['stuck']>) =>
  error('bad-option', `${argv[index]} ${WHY[why]}`, {
    location: `argv[${index}]`,
    help: "write options in full, and those of the script after the script's name",
  });

function targetOf(scan: OptionScan, argv: readonly string[]): Target | undefined {
  const name = argv[scan.next];
  if (name === undefined) return undefined;
  const form = lastOption(scan, '--module') ? 'module' : lastOption(scan, '--no_python') ? 'program' : 'script';
  return { form, name, index: scan.next, argsFrom: scan.next + 1 };
}

const optionsIn = (scan: OptionScan): Options =>
  new Map(
    scan.options.map(({ name, value, valueIndex, before }) => [
      optionName(name),
      {
        value: value ?? true,
        origin: { kind: 'argv', index: valueIndex },
        ...(value === undefined ? {} : { pointer: { kind: 'argv', index: valueIndex, before } as const }),
      },
    ]),
  );

const SIZING = /^(?:dynamo|megatron|fp8|parallelism|gradient)_/;

const unreadOptions = (scan: OptionScan): readonly Unread[] =>
  scan.options
    .map(({ name, index }) => ({ key: optionName(name), index }))
    .filter(({ key }) => !READ_OPTIONS.has(key))
    .map(({ key, index }) => ({
      key,
      origin: { kind: 'argv', index },
      reason: SIZING.test(key) ? 'not-estimated' : 'no-effect-on-memory',
    }));
