import type {
  GradientCheckpointing,
  LossImpl,
  MixedPrecision,
  Origin,
  Setting,
  TrainingSpec,
  TrainingValues,
} from '../../spec/index.ts';
import { orNull, toBoolean, toInteger, toMap, toNumber, toOneOf, toText, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { OPTIMIZERS } from './fields.ts';

/** What holds where a field is not given; a subclass of TrainingArguments brings its own. */
export interface TrainingDefaults {
  readonly origin: Origin;
  readonly gradientCheckpointing: boolean;
  /** TRL puts `use_reentrant: False` into kwargs that lack it; plain transformers leaves that to torch, which takes True. */
  readonly fillsReentrant: boolean;
  /** TRL: bf16 autocast unless fp16 is on. */
  readonly bf16UnlessFp16: boolean;
  readonly lossImpl: LossImpl;
  readonly outputDir: string | null;
  /** Default: that of the newest transformers. */
  readonly optim?: string;
  /** Checkpointing without kwargs; default: as the newest transformers has it, not reentrant. */
  readonly useReentrant?: boolean;
  /** Whether `sync_each_batch` does anything; default: as with the newest transformers, yes. */
  readonly heedsSyncEachBatch?: boolean;
}

/** Older names of fields, so that a command written for an older version is read and rewritten in its own words. */
export const FORMER_NAMES: Readonly<Record<string, readonly string[]>> = {
  per_device_train_batch_size: ['per_gpu_train_batch_size'],
  per_device_eval_batch_size: ['per_gpu_eval_batch_size'],
  eval_strategy: ['evaluation_strategy'],
  // TRL's own switch before transformers had one.
  use_liger_kernel: ['use_liger'],
};

/**
 * The settings that TrainingArguments carries. `launched`: autocast that the launcher asks for (ACCELERATE_MIXED_PRECISION),
 * which holds where neither bf16 nor fp16 is set. Source: transformers 5.17 training_args.py `__post_init__`.
 */
export function readTrainingArguments(
  reader: SettingReader,
  defaults: TrainingDefaults,
  launched: Setting<MixedPrecision> | undefined,
): TrainingSpec {
  const field = <T>(key: string, convert: Parameters<typeof reader.setting<T>>[1], value: T): Setting<T> =>
    reader.setting([key, ...(FORMER_NAMES[key] ?? [])], convert, { value, origin: defaults.origin });
  const outputDir = field<string | null>('output_dir', toText, defaults.outputDir);
  reader.note('bf16_full_eval', 'fp16_full_eval');
  return {
    perDeviceTrainBatchSize: field('per_device_train_batch_size', toInteger(1), 8),
    perDeviceEvalBatchSize: field('per_device_eval_batch_size', toInteger(1), 8),
    eval: readEval(reader, defaults.origin),
    gradientAccumulationSteps: field('gradient_accumulation_steps', toInteger(1), 1),
    mixedPrecision: readMixedPrecision(reader, defaults, launched),
    optim: readOptimizer(reader, defaults),
    ...readRare(reader, defaults),
    maxGradNorm: field('max_grad_norm', toNumber, 1),
    gradientCheckpointing: readCheckpointing(reader, defaults),
    lossImpl: readLiger(reader, defaults),
    dataloaderNumWorkers: field('dataloader_num_workers', toInteger(0), 0),
    dataloaderPinMemory: field('dataloader_pin_memory', toBoolean, true),
    saveTotalLimit: field<number | null>('save_total_limit', orNull(toInteger(1)), null),
    ...(outputDir.value === null ? {} : { outputDir: outputDir as Setting<string> }),
    ...resumeSetting(reader),
  };
}

function resumeSetting(reader: SettingReader): Pick<TrainingSpec, 'resumeFromCheckpoint'> {
  const given = reader.given(['resume_from_checkpoint'], orNull(toText));
  return given ? { resumeFromCheckpoint: given } : {};
}

function readEval(reader: SettingReader, origin: Origin): Setting<boolean> {
  reader.note('eval_steps', 'eval_delay', 'eval_accumulation_steps');
  const strategy = reader.given(['eval_strategy', 'evaluation_strategy'], toOneOf('no', 'steps', 'epoch'));
  if (strategy && strategy.value !== 'no') return { value: true, origin: strategy.origin };
  // A script evaluates after training while model and optimizer states are still there: the same spike.
  const asked = reader.given(['do_eval'], toBoolean) ?? reader.given(['eval_on_start'], toBoolean);
  return asked ?? (strategy ? { value: false, origin: strategy.origin } : { value: false, origin });
}

function readMixedPrecision(
  reader: SettingReader,
  defaults: TrainingDefaults,
  launched: Setting<MixedPrecision> | undefined,
): Setting<MixedPrecision> {
  const fp16 = reader.given(['fp16'], orNull(toBoolean));
  if (fp16?.value) return { value: 'fp16', origin: fp16.origin };
  const bf16 = reader.given(['bf16'], orNull(toBoolean));
  if (bf16?.value) return { value: 'bf16', origin: bf16.origin };
  if (!bf16 && defaults.bf16UnlessFp16) return { value: 'bf16', origin: defaults.origin };
  if (launched && launched.value !== 'no') return launched;
  return { value: 'no', origin: bf16?.origin ?? fp16?.origin ?? defaults.origin };
}

/** Fields that few runs give; absent ones are off. */
function readRare(reader: SettingReader, { heedsSyncEachBatch = true }: TrainingDefaults): TrainingSpec {
  const optimArgs = reader.given(['optim_args'], orNull(toText));
  const modules = reader.given(['optim_target_modules'], orNull(toWords));
  const smoothing = reader.given(['label_smoothing_factor'], toNumber);
  const noise = reader.given(['neftune_noise_alpha'], orNull(toNumber));
  const compile = reader.given(['torch_compile'], toBoolean);
  return {
    ...(optimArgs ? { optimArgs: optimArgs as Setting<string> } : {}),
    ...(modules?.value ? { optimTargetModules: { ...modules, value: projected(modules.value) } } : {}),
    ...(smoothing ? { labelSmoothingFactor: smoothing } : {}),
    ...(noise?.value ? { neftuneNoiseAlpha: noise as Setting<number> } : {}),
    ...(compile ? { torchCompile: compile } : {}),
    ...readSync(reader, heedsSyncEachBatch),
  };
}

/** `sync_each_batch` of accelerate's GradientAccumulationPlugin, two levels down; a config in a file of its own is not opened. */
function readSync(reader: SettingReader, heeded: boolean): Pick<TrainingSpec, 'syncsEachMicroBatch'> {
  const { raw } = reader.values.find('accelerator_config') ?? {};
  if (raw === undefined || raw === null || (typeof raw === 'string' && !/^\s*\{/.test(raw))) return {};
  const config = reader.given(['accelerator_config'], toMap);
  const accumulation = toMap(config?.value?.gradient_accumulation_kwargs ?? null);
  const sync = accumulation.ok ? accumulation.value.sync_each_batch : undefined;
  return config && sync !== undefined
    ? { syncsEachMicroBatch: { value: sync === true && heeded, origin: config.origin } }
    : {};
}

/** transformers: one word `all-linear` (or with an underscore), else names and patterns. */
const projected = (words: readonly string[]): TrainingValues['optimTargetModules'] =>
  words.length === 1 && words[0]!.replaceAll('_', '-') === 'all-linear' ? 'all-linear' : words;

function readOptimizer(
  reader: SettingReader,
  { origin, optim = 'adamw_torch_fused' }: TrainingDefaults,
): Setting<string> {
  const legacy = reader.given(['adafactor'], toBoolean);
  const otherwise: Setting<string> = legacy?.value
    ? { value: 'adafactor', origin: legacy.origin }
    : { value: optim, origin };
  return reader.setting(['optim'], toOneOf(...OPTIMIZERS), otherwise);
}

const KEEP_NOTHING: Omit<GradientCheckpointing, 'enabled' | 'useReentrant'> = { everyNLayers: 1, offload: false };

function readCheckpointing(reader: SettingReader, defaults: TrainingDefaults): Setting<GradientCheckpointing> {
  const on = reader.setting(['gradient_checkpointing'], toBoolean, {
    value: defaults.gradientCheckpointing,
    origin: defaults.origin,
  });
  const kwargs = reader.given(['gradient_checkpointing_kwargs'], orNull(toMap));
  if (on.value === null) return { value: null, origin: on.origin };
  const { use_reentrant, every_n_layers, offload, ...others } = kwargs?.value ?? {};
  // kwargs that lack it leave the choice to torch, which takes True.
  const unsaid = !defaults.fillsReentrant && (Object.keys(others).length > 0 || defaults.useReentrant === true);
  const value: GradientCheckpointing = {
    ...KEEP_NOTHING,
    enabled: on.value,
    useReentrant: typeof use_reentrant === 'boolean' ? use_reentrant : unsaid,
    ...(typeof every_n_layers === 'number' ? { everyNLayers: every_n_layers } : {}),
    ...(offload === true ? { offload: true } : {}),
  };
  return { value, origin: on.origin.kind === 'default' && kwargs && on.value ? kwargs.origin : on.origin };
}

function readLiger(reader: SettingReader, defaults: TrainingDefaults): Setting<LossImpl> {
  reader.note('liger_kernel_config');
  const liger = reader.given(['use_liger_kernel', 'use_liger'], toBoolean);
  const config = reader.given(['liger_kernel_config'], orNull(toMap));
  // Liger's model patch brings the fused loss unless its own switch says otherwise.
  const fused = liger?.value === true && config?.value?.fused_linear_cross_entropy !== false;
  if (fused) return { value: 'fused', origin: liger!.origin };
  return { value: defaults.lossImpl, origin: defaults.origin };
}

/** Autocast that `ACCELERATE_MIXED_PRECISION` or a launcher above asks for. */
export function launchedPrecision(
  environment: Readonly<Record<string, string | undefined>>,
  above: readonly TrainingSpec[],
): Setting<TrainingValues['mixedPrecision']> | undefined {
  const launcher = above.findLast((spec) => spec.mixedPrecision)?.mixedPrecision;
  if (launcher) return launcher;
  const name = 'ACCELERATE_MIXED_PRECISION';
  const value = environment[name];
  return value === 'bf16' || value === 'fp16' ? { value, origin: { kind: 'env', name } } : undefined;
}
