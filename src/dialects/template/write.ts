import type { GradientCheckpointing, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, Written } from '../dialect.ts';
import { cannot } from '../hf-argparser/written.ts';
import type { TemplateDetail } from './read.ts';

/** Settings that are one flag each. */
const FLAGS: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceTrainBatchSize: 'rows',
  gradientAccumulationSteps: 'accumulate',
  maxLength: 'tokens',
};

/** Flags in place, or appended. undefined: not my setting; a reason: mine, but it cannot be told that. */
export function writeTemplate(
  { reading: { detail } }: Layer<TemplateDetail>,
  setting: SettingName,
  to: unknown,
): Written | undefined {
  const flag = FLAGS[setting];
  if (flag) return detail.launch.values.assign(flag, to as FileValue);
  if (setting !== 'gradientCheckpointing') return undefined;
  const { enabled, useReentrant, everyNLayers, offload } = to as GradientCheckpointing;
  if (offload || everyNLayers !== 1 || (enabled && useReentrant))
    return cannot('the tool recomputes every layer or none');
  return detail.launch.switchTo(enabled, 'recompute');
}
