import type { Diagnostic } from '../../core/index.ts';
import { formatOrigin, type GradientCheckpointing, type Origin, type Setting } from '../../spec/index.ts';
import { deepSpeedStageOf, type Lookup, readFsdp, shardingOfStage, unreadFsdp } from '../accelerate-config/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { EngineUse, FileValue, Processes, Sharding } from '../dialect.ts';
import { orNull, toBoolean, toMap, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { parseJson } from '../json-text.ts';
import { transformersIn } from './versions.ts';

export interface TrainerSharding {
  readonly sharding?: Sharding;
  /** FSDP's own, where it is on. */
  readonly gradientCheckpointing?: Setting<GradientCheckpointing>;
  readonly engines: readonly EngineUse[];
  readonly diagnostics: readonly Diagnostic[];
  /** Keys of `fsdp_config` that are passed over. */
  readonly unread: readonly Unread[];
}

/** `--deepspeed ds.json` and `--fsdp … --fsdp_config …` of TrainingArguments. A file that is missing or broken is an error. */
export function readTrainerSharding(reader: SettingReader, context: ReadContext): TrainerSharding {
  reader.note('fsdp_transformer_layer_cls_to_wrap', 'fsdp_min_num_params', 'parallelism_config');
  const deepspeed = reader.given(['deepspeed'], orNull(toText));
  if (deepspeed?.value) return readDeepSpeed(reader, deepspeed.value, context);
  return readTrainerFsdp(reader, context);
}

function readDeepSpeed(reader: SettingReader, path: string, context: ReadContext): TrainerSharding {
  const { origin, place } = reader.values.find('deepspeed')!;
  const stage: Sharding = { strategy: null, offload: [], origin };
  const inline = inlineConfig(path);
  if (inline !== undefined) {
    const node = parseJson(inline, formatOrigin(origin));
    if (!node.ok) return { engines: [], unread: [], diagnostics: node.error };
    const sharding = shardingOfStage(deepSpeedStageOf(node.value.value), origin);
    return { sharding, engines: [{ dialect: 'deepspeed-config', origin }], unread: [], diagnostics: [] };
  }
  const source = context.source(path);
  if (!source.ok) return { engines: [], unread: [], diagnostics: source.error };
  const pointer =
    place.kind === 'flag'
      ? ({
          kind: 'argv',
          index: place.flag.values[0]?.index ?? place.flag.index,
          before: place.flag.style === 'equals' ? `${place.flag.spelling}=` : '',
        } as const)
      : place.kind === 'file'
        ? ({ kind: 'file', path: reader.values.file!.source.path, keyPath: ['deepspeed'] } as const)
        : ({ kind: 'fixed', reason: 'it is named in an .args file' } as const);
  const file = { source: source.value, format: 'json', pointer } as const;
  return { sharding: stage, engines: [{ dialect: 'deepspeed-config', file, origin }], unread: [], diagnostics: [] };
}

/** A JSON object in place of a file, as it stands or in base64. Source: accelerate/utils/deepspeed.py, HfDeepSpeedConfig. */
function inlineConfig(text: string): string | undefined {
  if (/^\s*\{/.test(text)) return text;
  if (!/^[A-Za-z0-9_+/-]{8,}={0,2}$/.test(text)) return undefined;
  const decoded = Buffer.from(text, 'base64').toString('utf8');
  return /^\s*\{/.test(decoded) ? decoded : undefined;
}

const FSDP_OFF = /^(?:|false|no|none|0)$/i;

/** Both the old string (`full_shard auto_wrap offload`) and the boolean with fsdp_config (version 2 unless it says 1). */
function readTrainerFsdp(reader: SettingReader, context: ReadContext): TrainerSharding {
  const found = reader.values.find('fsdp');
  reader.note('fsdp', 'fsdp_config');
  if (!found || found.raw === false || found.raw === null || FSDP_OFF.test(String(found.raw))) {
    return { engines: [], unread: [], diagnostics: [] };
  }
  const config = readFsdpConfig(reader, context);
  const words = Array.isArray(found.raw) ? found.raw.map(String) : String(found.raw).split(/[\s,]+/);
  const { sharding, gradientCheckpointing, diagnostics } = readFsdp(
    fsdpOptions(words, config.value, found.origin, transformersIn(context.versions).fsdpVersion),
    found.origin,
  );
  return {
    sharding,
    ...(gradientCheckpointing ? { gradientCheckpointing } : {}),
    engines: [{ dialect: 'fsdp', origin: found.origin }],
    diagnostics: [...config.diagnostics, ...diagnostics],
    unread: unreadFsdp(config.value, reader.values.find('fsdp_config')?.origin ?? found.origin),
  };
}

/**
 * TrainingArguments' fsdp settings under the names of accelerate's options, which they become; the version is 2 unless the
 * config says 1. Source: training_args.py `_process_fsdp_args`, `_apply_legacy_fsdp_to_config`.
 */
function fsdpOptions(
  words: readonly string[],
  config: Readonly<Record<string, FileValue>>,
  origin: Origin,
  otherwise: 1 | 2,
): Lookup {
  const say = (key: string): FileValue | undefined => config[key] ?? config[`fsdp_${key}`];
  const version = Number(say('version') ?? otherwise);
  const reshard = say('reshard_after_forward');
  const strategy = words.find((word) => /_shard$|^shard_|^hybrid_shard/.test(word));
  const options: Readonly<Record<string, FileValue | undefined>> = {
    fsdp_version: version,
    fsdp_sharding_strategy: typeof reshard === 'string' ? reshard : strategy,
    fsdp_reshard_after_forward: reshard ?? (strategy === 'shard_grad_op' ? false : undefined),
    fsdp_offload_params: words.includes('offload') || isOn(say('cpu_offload')) || isOn(say('offload_params')),
    fsdp_activation_checkpointing: say('activation_checkpointing'),
  };
  return (option) => {
    const value = options[option];
    return value === undefined ? undefined : { value, origin };
  };
}

const isOn = (value: FileValue | undefined): boolean => value === true || value === 'true';

function readFsdpConfig(
  reader: SettingReader,
  context: ReadContext,
): { readonly value: Readonly<Record<string, FileValue>>; readonly diagnostics: readonly Diagnostic[] } {
  const found = reader.values.find('fsdp_config');
  if (!found || found.raw === null) return { value: {}, diagnostics: [] };
  if (typeof found.raw === 'string' && !/^\s*\{/.test(found.raw)) {
    const source = context.source(found.raw);
    if (!source.ok) return { value: {}, diagnostics: source.error };
    const node = parseJson(source.value.text, found.raw);
    if (!node.ok) return { value: {}, diagnostics: node.error };
    const map = toMap(node.value.value);
    return { value: map.ok ? map.value : {}, diagnostics: [] };
  }
  const given = reader.given(['fsdp_config'], toMap);
  return { value: given?.value ?? {}, diagnostics: [] };
}

/**
 * One plain process that sees several GPUs: transformers wraps the model in nn.DataParallel, and a step takes the
 * per-device batch times the GPUs. Source: training_args.py `train_batch_size`, trainer.py `_wrap_model`.
 */
export function dataParallelTrap(
  launched: Processes | undefined,
  visibleGpus: number | undefined,
  reader: SettingReader,
): { readonly processes: Processes; readonly sharding: Sharding } | undefined {
  const alone = !launched || (!launched.distributed && launched.perNode === 1 && (launched.nodes ?? 1) === 1);
  const onCpu = reader.given(['use_cpu', 'no_cuda'], toBoolean)?.value === true;
  if (!alone || onCpu || visibleGpus === undefined || visibleGpus < 2) return undefined;
  const origin = { kind: 'derived', from: `${visibleGpus} visible GPUs` } as const;
  return {
    processes: { nodes: 1, perNode: visibleGpus, distributed: false, origin },
    sharding: { strategy: 'dp', offload: [], origin },
  };
}
