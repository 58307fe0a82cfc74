import { ok, type Result } from '../../core/index.ts';
import type { Origin, Strategy } from '../../spec/index.ts';
import type { LaunchSource } from '../contract.ts';
import type { FileValue, Sharding } from '../dialect.ts';
import { parseJson } from '../json-text.ts';

/** What a DeepSpeed file says about who holds what; undefined: left to accelerate (`auto`) or to DeepSpeed's default. */
export interface DeepSpeedStage {
  readonly stage: number | 'auto' | 'unknown' | undefined;
  readonly optimizerDevice: string | undefined;
  readonly parameterDevice: string | undefined;
}

/** Stage and offload of a DeepSpeed config, the legacy `cpu_offload` switches included. */
export function readDeepSpeedStage(source: LaunchSource): Result<DeepSpeedStage> {
  // Where the file is missing its name is all that is known: ds_zero2.json, ds_z3_offload_config.json.
  if (source.missing) {
    const named = /(?:^|[_\W])(?:zero|z|s|stage)[-_]?([0-3])(?![0-9])/i.exec(source.path.split('/').at(-1)!)?.[1];
    const stage = named === undefined ? ('unknown' as const) : Number(named);
    return ok({ stage, optimizerDevice: undefined, parameterDevice: undefined });
  }
  const parsed = parseJson(source.text, source.path);
  if (!parsed.ok) return parsed;
  return ok(deepSpeedStageOf(parsed.value.value));
}

/** The same of a config that is no file: a map in a trainer's YAML, text in the command. */
export function deepSpeedStageOf(config: FileValue): DeepSpeedStage {
  const zero = mapAt(config, 'zero_optimization');
  const stage = zero.stage;
  return {
    stage: stage === 'auto' ? 'auto' : typeof stage === 'number' ? stage : undefined,
    optimizerDevice: deviceOf(zero, 'offload_optimizer', 'cpu_offload'),
    parameterDevice: deviceOf(zero, 'offload_param', 'cpu_offload_params'),
  };
}

const STRATEGIES: readonly Strategy[] = ['ddp', 'zero1', 'zero2', 'zero3'];

/** Who holds what under DeepSpeed's own rules: a stage that is not there is 0. */
export function shardingOfStage(
  { stage = 0, optimizerDevice, parameterDevice }: DeepSpeedStage,
  origin: Origin,
): Sharding {
  const isOn = (device: string | undefined): boolean => device !== undefined && device !== 'none';
  return {
    strategy: (typeof stage === 'number' ? STRATEGIES[stage] : undefined) ?? null,
    offload: [
      ...(isOn(optimizerDevice) ? (['optimizer'] as const) : []),
      ...(isOn(parameterDevice) ? (['parameters'] as const) : []),
    ],
    origin,
  };
}

type JsonMap = { readonly [key: string]: FileValue };

function deviceOf(zero: JsonMap, key: string, legacy: string): string | undefined {
  const device = mapAt(zero, key).device;
  return typeof device === 'string' ? device : zero[legacy] === true ? 'cpu' : undefined;
}

function mapAt(value: FileValue, key: string): JsonMap {
  const inner = value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as JsonMap)[key] : null;
  return inner !== null && typeof inner === 'object' && !Array.isArray(inner) ? (inner as JsonMap) : {};
}
