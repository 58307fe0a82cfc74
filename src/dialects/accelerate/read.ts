import { type Diagnostic, error, fail, ok, type Result } from '../../core/index.ts';
import type { TrainingSpec } from '../../spec/index.ts';
import {
  type Lookup,
  modelParallel,
  readDeepSpeed,
  readDeepSpeedStage,
  readFsdp,
  readMixedPrecision,
  readOther,
  type ShardingReading,
} from '../accelerate-config/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { EngineUse, FileReference, Options, Position, Reading } from '../dialect.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { KNOWN_OPTIONS } from './keys.ts';
import { type Paradigm, type Paradigms, readParadigm, readProcesses } from './processes.ts';

/** What writing needs: who gives what, and what is set up. */
export interface AccelerateDetail {
  readonly options: Options;
  readonly file: ConfigFile | undefined;
  readonly paradigm: Paradigm;
  readonly deepspeedFile: FileReference | undefined;
  readonly lookup: Lookup;
  /** Token where a new option can be put; undefined: the launcher has no command line of its own. */
  readonly optionsFrom?: number;
}

/**
 * Reads the options of `accelerate launch`, however they came, together with its config file: flag over file over default.
 * `unread` names the options that accelerate does not have.
 */
export function readAccelerateOptions(
  options: Options,
  position: Position,
  context: ReadContext,
): Result<Reading<AccelerateDetail>> {
  const located = readConfigFile(options, position, context);
  if (!located.ok) return located;
  const file = located.value;
  const lookup = lookupIn(options, file);
  const paradigm = readParadigm(lookup, file !== undefined, position);
  const gpuIds = gpuIdsOf(lookup);
  const shown = gpuIds === undefined ? position : { ...position, visibleGpus: gpuIds.split(',').length };
  const path = file?.reference.source.path;
  const processes = readProcesses(lookup, paradigm, path, { launcher: position, ranks: shown });
  const deepspeed = readDeepSpeedFile(lookup, paradigm, file, options, context);
  if (!deepspeed.ok) return deepspeed;
  const sharing = readSharding(lookup, paradigm, deepspeed.value?.stage);
  const precision = readMixedPrecision(lookup);
  const spec: TrainingSpec = {
    mixedPrecision: precision.setting,
    ...(sharing?.gradientCheckpointing ? { gradientCheckpointing: sharing.gradientCheckpointing } : {}),
  };
  return ok({
    spec,
    processes: processes.value,
    ...(sharing ? { sharding: sharing.sharding } : {}),
    files: file ? [file.reference] : [],
    engines: enginesOf(paradigm, options, file, deepspeed.value?.reference),
    ...(gpuIds === undefined ? {} : { env: { CUDA_VISIBLE_DEVICES: gpuIds } }),
    unread: [...unknownOptions(options), ...(file?.config.unread ?? [])],
    diagnostics: [
      ...(file?.diagnostics ?? []),
      ...(file?.config.diagnostics ?? []),
      ...precision.diagnostics,
      ...processes.diagnostics,
      ...(sharing?.diagnostics ?? []),
      ...modelParallel(lookup),
      ...elsewhere(paradigm, path),
    ],
    detail: { options, file, paradigm: paradigm.kind, deepspeedFile: deepspeed.value?.reference, lookup },
  });
}

/** A flag without a value in a YAML (`null`) says nothing. */
function lookupIn(options: Options, file: ConfigFile | undefined): Lookup {
  return (option) => {
    const given = options.get(option);
    if (given && given.value !== null && given.value !== undefined) {
      return { value: given.value as never, origin: given.origin };
    }
    const written = file?.config.values.get(option);
    // An empty value is as good as none, but a gap that is filled in later is a value nobody knows.
    const gap = file?.config.unread.some(({ key, reason }) => key === option && reason === 'interpolation');
    return written && (written.value !== null || gap) ? written : undefined;
  };
}

/** `all` and nothing mean what is visible anyway. */
function gpuIdsOf(lookup: Lookup): string | undefined {
  const value = lookup('gpu_ids')?.value;
  return value === undefined || value === null || value === 'all' ? undefined : String(value);
}

function readSharding(
  lookup: Lookup,
  { kind, origin }: Paradigms,
  stage: Parameters<typeof readDeepSpeed>[1],
): ShardingReading | undefined {
  switch (kind) {
    case 'deepspeed':
      return readDeepSpeed(lookup, stage, origin);
    case 'fsdp':
      return readFsdp(lookup, origin);
    case 'megatron':
      return readOther('Megatron-LM', origin);
    case 'tpu':
      return readOther('XLA', origin);
    case 'multi':
    case 'simple':
    case 'sagemaker':
      return undefined;
  }
}

function readDeepSpeedFile(
  lookup: Lookup,
  { kind }: Paradigms,
  file: ConfigFile | undefined,
  options: Options,
  context: ReadContext,
) {
  const named = kind === 'deepspeed' ? lookup('deepspeed_config_file') : undefined;
  if (!named || named.value === null || named.value === 'none') return ok(undefined);
  const source = context.source(String(named.value));
  if (!source.ok) return source;
  const stage = readDeepSpeedStage(source.value);
  if (!stage.ok) return stage;
  const inFile = { kind: 'file', path: file?.reference.source.path ?? '', keyPath: named.keyPath ?? [] } as const;
  const pointer = named.keyPath ? inFile : options.get('deepspeed_config_file')?.pointer;
  const fixed = { kind: 'fixed', reason: 'the launch does not name it in a place of its own' } as const;
  const reference: FileReference = { source: source.value, format: 'json', pointer: pointer ?? fixed };
  return ok({ stage: stage.value, reference });
}

function enginesOf(
  { kind, origin }: Paradigms,
  options: Options,
  file: ConfigFile | undefined,
  deepspeedFile: FileReference | undefined,
): readonly EngineUse[] {
  const named =
    options.get('config_file')?.origin ?? ({ kind: 'derived', from: 'default config of accelerate' } as const);
  return [
    // Read here already, with the flags that win over it: it only joins the stack.
    ...(file ? [{ dialect: 'accelerate-config', origin: named }] : []),
    ...(kind === 'fsdp' ? [{ dialect: 'fsdp', origin }] : []),
    ...(kind === 'deepspeed'
      ? [{ dialect: 'deepspeed-config', origin, ...(deepspeedFile ? { file: deepspeedFile } : {}) }]
      : []),
  ];
}

const unknownOptions = (options: Options): readonly Unread[] =>
  [...options].flatMap(([key, { origin }]) => (KNOWN_OPTIONS.has(key) ? [] : [{ key, origin, reason: 'unknown-key' }]));

function elsewhere({ kind }: Paradigms, path: string | undefined): Diagnostic[] {
  if (kind !== 'sagemaker') return [];
  const message = 'this config sends the run to SageMaker, where nothing of it can be fitted or watched';
  const help = 'put snug inside the job, or use a config with compute_environment: LOCAL_MACHINE';
  return [error('elsewhere', message, { ...(path ? { location: path } : {}), help })];
}

export const noScript = (index: number): Result<never> =>
  fail(
    error('no-script', 'accelerate launch is given no script', {
      location: `argv[${index}]`,
      help: 'write the script after the options: accelerate launch --num_processes 2 train.py',
    }),
  );
