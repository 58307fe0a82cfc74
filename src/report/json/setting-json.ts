import type { Parallelism } from '../../dialects/index.ts';
import type { Distributed, GradientCheckpointing, SettingName } from '../../spec/index.ts';
import { snakeCased } from './snake-case.ts';

/**
 * A setting's value as a native config spells it: checkpointing is on or off, no offload is `none`, keys are snake_case.
 * A `model_config` keeps its own keys.
 */
export function settingJson(name: SettingName, value: unknown): unknown {
  if (value === null || value === undefined) return null;
  switch (name) {
    case 'gradientCheckpointing':
      return (value as GradientCheckpointing).enabled;
    case 'distributed': {
      const { offload, ...rest } = value as Distributed | Parallelism;
      return { ...(snakeCased(rest) as object), offload: offload.length === 0 ? 'none' : [...offload] };
    }
    case 'modelConfig':
      return value;
    default:
      return snakeCased(value);
  }
}

/** What a setting's plain value leaves out: how checkpointing is done, where it is on. */
export const settingDetails = (name: SettingName, value: unknown): { readonly details?: unknown } => {
  if (name !== 'gradientCheckpointing' || !value || !(value as GradientCheckpointing).enabled) return {};
  const { enabled: _, ...details } = value as GradientCheckpointing;
  return { details: snakeCased(details) };
};
