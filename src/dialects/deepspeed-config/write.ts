import type { Distributed, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, SourceEdit, StackView, Written } from '../dialect.ts';
import { cannot, wrote } from '../hf-argparser/written.ts';
import { type DeepSpeedDetail, SHARED_KEYS } from './read.ts';

/** Stage and offload in a copy of the JSON; how many processes there are is the launcher's. */
export function writeDeepSpeed(
  layer: Layer<DeepSpeedDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  if (setting !== 'distributed') return undefined;
  const now = spec.distributed?.value;
  const wanted = to as Distributed;
  if (!now || now.nodes !== wanted.nodes || now.processesPerNode !== wanted.processesPerNode) return undefined;
  const stage = { ddp: 0, zero1: 1, zero2: 2, zero3: 3 }[wanted.strategy as string];
  if (stage === undefined) return cannot(`DeepSpeed has no stage for ${wanted.strategy}`);
  const { offload } = wanted;
  if (offload.includes('activations')) return cannot('DeepSpeed does not offload the activations of these models');
  if (offload.includes('parameters') && stage < 3) return cannot('DeepSpeed offloads parameters only at ZeRO stage 3');
  if (offload.length > 0 && stage === 0) return cannot('DeepSpeed offloads only with a ZeRO stage');
  const device = (target: 'optimizer' | 'parameters', key: string): SourceEdit[] => {
    if (offload.includes(target) === now.offload.includes(target)) return [];
    return [edit(layer, ['zero_optimization', key, 'device'], offload.includes(target) ? 'cpu' : 'none')];
  };
  return wrote(
    ...(wanted.strategy === now.strategy ? [] : [edit(layer, ['zero_optimization', 'stage'], stage)]),
    ...device('optimizer', 'offload_optimizer'),
    ...device('parameters', 'offload_param'),
  );
}

/** A number that must agree with the trainer's is changed with it; `auto` stays `auto`. */
export function followDeepSpeed(
  layer: Layer<DeepSpeedDetail>,
  setting: SettingName,
  to: unknown,
): readonly SourceEdit[] {
  const key = SHARED_KEYS[setting];
  return key && layer.reading.detail.concrete.has(key) ? [edit(layer, [key], to as number)] : [];
}

const edit = (layer: Layer<DeepSpeedDetail>, keyPath: readonly string[], value: FileValue): SourceEdit => ({
  kind: 'file',
  path: layer.reading.detail.file.source.path,
  keyPath,
  value,
});
