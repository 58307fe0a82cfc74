import { type Diagnostic, error, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Origin, type Setting, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { EngineUse, Position, Processes, Reading, Sharding } from '../dialect.ts';
import { lastOption, type OptionScan, scanOptions } from '../scan-options.ts';
import { type ConfigValue, readConfig, type XtunerConfig } from './config.ts';
import type { XtunerStart } from './detect.ts';
import { BUILTIN_DEEPSPEED, XTUNER_OPTIONS } from './options.ts';
import { READ, settingsOfConfig, settingsOfName } from './settings.ts';

/** Reads `xtuner train CONFIG`: what the config assigns as literals, the options of the command, and who starts processes. */
export function readXtuner(start: XtunerStart, position: Position, context: ReadContext): Result<Reading> {
  const { argv } = position;
  const before = scanOptions(argv, start.argsFrom, XTUNER_OPTIONS);
  const path = argv[before.next];
  if (path === undefined) {
    return fail(
      error('no-config', 'xtuner train is given no config', {
        location: `argv[${start.claim.from}]`,
        help: 'name a config file, or one of xtuner list-cfg',
      }),
    );
  }
  const behind = scanOptions(argv, before.next + 1, XTUNER_OPTIONS);
  const options: OptionScan = { ...behind, options: [...before.options, ...behind.options] };
  const isFile = /\.py$/.test(path);
  const config = isFile ? readConfig(path, context) : undefined;
  if (config && !config.ok) return config;
  const origin: Origin = { kind: 'argv', index: before.next };
  const settings = config ? settingsOfConfig(config.value) : settingsOfName(path, origin);
  const engine = readDeepSpeed(options, context);
  if (!engine.ok) return engine;
  const output = lastOption(options, '--work-dir');
  const resume = lastOption(options, '--resume');
  const given = (option: NonNullable<typeof output>): Setting<string> => ({
    value: option.value!,
    origin: { kind: 'argv', index: option.valueIndex },
  });
  const spec: TrainingSpec = {
    ...settings.spec,
    ...(output ? { outputDir: given(output) } : {}),
    ...(resume ? { resumeFromCheckpoint: given(resume) } : {}),
  };
  return ok({
    spec,
    ...(start.form === 'cli' ? { via: 'cli' as const } : {}),
    ...readProcesses(start, options, position),
    ...engine.value,
    ...(config ? { files: [{ source: config.value.source, format: 'yaml', pointer: PROGRAM }] } : {}),
    unread: [...(config ? leftOver(config.value, path) : []), ...overrides(options)],
    diagnostics: [...settings.diagnostics, ...(isFile ? [] : [builtin(path, origin)]), ...stuck(options, argv)],
    resume: { kind: 'unsupported', reason: 'its checkpoints have a layout of their own, and the config is a program' },
    detail: undefined,
  });
}

const PROGRAM = { kind: 'fixed', reason: 'a config that is a program is not rewritten' } as const;

/** One plain process unless NPROC_PER_NODE or NNODES say more. Source: xtuner/entry_point.py `cli`. */
function readProcesses(
  start: XtunerStart,
  options: OptionScan,
  { environment }: Position,
): { readonly processes?: Processes } {
  if (start.form !== 'cli' || lastOption(options, '--launcher')?.value === 'slurm') return {};
  const count = (name: string): number => (/^[1-9]\d*$/.test(environment[name] ?? '') ? Number(environment[name]) : 1);
  const [nodes, perNode] = [count('NNODES'), count('NPROC_PER_NODE')];
  const named = environment.NPROC_PER_NODE === undefined ? undefined : 'NPROC_PER_NODE';
  const origin: Origin = named ? { kind: 'env', name: named } : { kind: 'derived', from: 'xtuner starts one process' };
  return { processes: { nodes, perNode, distributed: nodes * perNode > 1, origin } };
}

function readDeepSpeed(
  options: OptionScan,
  context: ReadContext,
): Result<{ readonly sharding?: Sharding; readonly engines?: readonly EngineUse[] }> {
  const option = lastOption(options, '--deepspeed');
  if (option?.value === undefined) return ok({});
  const origin: Origin = { kind: 'argv', index: option.valueIndex };
  const known = BUILTIN_DEEPSPEED[option.value];
  if (known) return ok({ sharding: { ...known, origin }, engines: [{ dialect: 'deepspeed-config', origin }] });
  const source = context.source(option.value);
  if (!source.ok) return source;
  const pointer = { kind: 'argv', index: option.valueIndex, before: option.before } as const;
  const file = { source: source.value, format: 'json', pointer } as const;
  return ok({
    sharding: { strategy: null, offload: [], origin },
    engines: [{ dialect: 'deepspeed-config', file, origin }],
  });
}

const builtin = (name: string, origin: Origin): Diagnostic =>
  warning('builtin-config', `${name} is a config that comes with XTuner, and is not read here`, {
    location: formatOrigin(origin),
    help: `xtuner copy-cfg ${name} . writes it into a file, which can be read`,
  });

const stuck = ({ stuck: where }: OptionScan, argv: readonly string[]): readonly Diagnostic[] =>
  where ? [warning('unread-option', `${argv[where.index]} is not read`, { location: `argv[${where.index}]` })] : [];

const overrides = ({ options }: OptionScan): readonly Unread[] =>
  options
    .filter(({ name }) => name === '--cfg-options')
    .map(({ name, index }) => ({ key: name, origin: { kind: 'argv', index }, reason: 'overrides of a program' }));

/** Variables that no setting is read from: expressions first, since nobody computes them. */
function leftOver(config: XtunerConfig, path: string): readonly Unread[] {
  const reason = ({ value }: ConfigValue): string =>
    value === undefined ? 'a Python expression' : 'not-a-memory-setting';
  return [...config.variables]
    .filter(([name]) => !READ.has(name))
    .map(([key, value]) => ({ key, origin: value.origin ?? { kind: 'file', path, line: 1 }, reason: reason(value) }));
}
