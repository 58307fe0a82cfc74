import { type Diagnostic, warning } from '../../core/index.ts';
import { formatOrigin, type GradientCheckpointing, type Setting } from '../../spec/index.ts';
import {
  deepSpeedStageOf,
  readDeepSpeedStage,
  readFsdp,
  shardingOfStage,
  unreadFsdp,
} from '../accelerate-config/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { EngineUse, FileValue, Sharding } from '../dialect.ts';
import { orNull, toMap } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { readTrainerSharding } from '../hf-trainer/sharding.ts';

export interface AxolotlSharding {
  readonly sharding?: Sharding;
  readonly gradientCheckpointing?: Setting<GradientCheckpointing>;
  readonly engines: readonly EngineUse[];
  readonly diagnostics: readonly Diagnostic[];
  /** Keys of `fsdp_config` that are passed over. */
  readonly unread: readonly Unread[];
  /** ZeRO stage as far as the trainer's own file names it. */
  readonly zeroStage?: number;
}

/** `deepspeed: file`, or FSDP by `fsdp_config` and `fsdp`; a version that is not named is 1. */
export function readSharding(reader: SettingReader, context: ReadContext): AxolotlSharding {
  reader.note('deepspeed', 'deepcompile', ...FSDP_KEYS, ...PARALLEL_KEYS);
  const parallel = modelParallel(reader);
  const deepspeed = reader.values.find('deepspeed');
  if (deepspeed && typeof deepspeed.raw === 'object') return inlineDeepSpeed(deepspeed.raw, deepspeed.origin, parallel);
  if (deepspeed && deepspeed.raw !== '') {
    const read = readTrainerSharding(reader, context);
    const file = read.engines.find((use) => use.file)?.file;
    const stage = file && readDeepSpeedStage(file.source);
    const zeroStage = stage?.ok && typeof stage.value.stage === 'number' ? { zeroStage: stage.value.stage } : {};
    return { ...read, ...zeroStage, diagnostics: [...read.diagnostics, ...parallel] };
  }
  return readFsdpKeys(reader, parallel);
}

const FSDP_KEYS = ['fsdp', 'fsdp_config', 'fsdp_version', 'fsdp_final_state_dict_type'];
const PARALLEL_KEYS = ['tensor_parallel_size', 'context_parallel_size', 'sequence_parallel_degree'];

function inlineDeepSpeed(
  raw: FileValue,
  origin: Sharding['origin'],
  diagnostics: readonly Diagnostic[],
): AxolotlSharding {
  const stage = deepSpeedStageOf(raw);
  const sharding = shardingOfStage(stage, origin);
  return {
    sharding,
    engines: [{ dialect: 'deepspeed-config', origin }],
    unread: [],
    diagnostics,
    zeroStage: Number(stage.stage ?? 0),
  };
}

function readFsdpKeys(reader: SettingReader, parallel: readonly Diagnostic[]): AxolotlSharding {
  const config = reader.given(['fsdp_config'], orNull(toMap));
  const list = reader.values.find('fsdp');
  const words = list ? String(Array.isArray(list.raw) ? list.raw.join(' ') : list.raw).split(/[\s,]+/) : [];
  const on = config?.value && Object.keys(config.value).length > 0;
  if (!on && words.filter((word) => word !== '').length === 0)
    return { engines: [], diagnostics: parallel, unread: [] };
  const origin = config?.origin ?? list!.origin;
  const keys = config?.value ?? {};
  const say = (key: string): FileValue | undefined => keys[key] ?? keys[`fsdp_${key}`];
  const replicas = reader.values.find('dp_replicate_size')?.raw;
  reader.note('dp_replicate_size', 'dp_shard_size');
  const strategy = words.find((word) => /_shard$|^shard_|^hybrid_shard/.test(word));
  const options: Readonly<Record<string, FileValue | undefined>> = {
    fsdp_version: reader.values.find('fsdp_version')?.raw ?? say('version') ?? 1,
    fsdp_sharding_strategy: strategy,
    fsdp_reshard_after_forward: say('reshard_after_forward'),
    fsdp_offload_params: isOn(say('offload_params')) || words.includes('offload'),
    fsdp_activation_checkpointing: say('activation_checkpointing'),
    parallelism_config_dp_replicate_size: replicas,
  };
  const read = readFsdp((option) => {
    const value = options[option];
    return value === undefined || value === null ? undefined : { value, origin };
  }, origin);
  return {
    sharding: read.sharding,
    ...(read.gradientCheckpointing ? { gradientCheckpointing: read.gradientCheckpointing } : {}),
    engines: [{ dialect: 'fsdp', origin }],
    diagnostics: [...read.diagnostics, ...parallel],
    unread: unreadFsdp(keys, origin),
  };
}

const isOn = (value: FileValue | undefined): boolean => value === true || /^(?:true|yes|1)$/i.test(String(value ?? ''));

/** What one GPU computes is split further than the estimate follows. */
function modelParallel(reader: SettingReader): readonly Diagnostic[] {
  return PARALLEL_KEYS.flatMap((key) => {
    const found = reader.values.find(key);
    if (!found || !(Number(found.raw) > 1)) return [];
    const message = `${key} ${found.raw} is not estimated: each GPU will need less than predicted`;
    return [warning('not-estimated', message, { location: formatOrigin(found.origin) })];
  });
}
