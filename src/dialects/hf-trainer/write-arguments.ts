import type { GradientCheckpointing, LossImpl, MixedPrecision, SettingName } from '../../spec/index.ts';
import type { FileValue, Written } from '../dialect.ts';
import { orNull, toBoolean, toMap } from '../hf-argparser/convert.ts';
import type { Values } from '../hf-argparser/values.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { FORMER_NAMES } from './training-arguments.ts';

/** Settings that are one field each. */
const ONE_FIELD: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceTrainBatchSize: 'per_device_train_batch_size',
  perDeviceEvalBatchSize: 'per_device_eval_batch_size',
  gradientAccumulationSteps: 'gradient_accumulation_steps',
  optim: 'optim',
  maxGradNorm: 'max_grad_norm',
  dataloaderNumWorkers: 'dataloader_num_workers',
  dataloaderPinMemory: 'dataloader_pin_memory',
  outputDir: 'output_dir',
  saveTotalLimit: 'save_total_limit',
};

/** Sets one field, or says why it cannot be set. */
export type SetField = (key: string, value: FileValue) => Written;

/** A `SetField` over `values`; `permitted` answers with a reason where the script has no such field. */
export const fieldSetter =
  (values: Values, permitted: (key: string) => true | string): SetField =>
  (key, value) => {
    const aliases = FORMER_NAMES[key] ?? [];
    const allowed = values.find(key, ...aliases) ? true : permitted(key);
    return allowed === true ? values.assign(key, value, aliases) : cannot(allowed);
  };

/** Writes what TrainingArguments carries; undefined: another dialect's or the subclass's setting. */
export function writeTrainingArguments(
  values: Values,
  set: SetField,
  setting: SettingName,
  to: unknown,
  offloadField?: string,
): Written | undefined {
  const key = ONE_FIELD[setting];
  if (key) return set(key, to as FileValue);
  switch (setting) {
    case 'mixedPrecision':
      return writeMixedPrecision(values, set, to as MixedPrecision);
    case 'gradientCheckpointing':
      return writeCheckpointing(values, set, to as GradientCheckpointing, offloadField);
    case 'syncsEachMicroBatch':
      return writeSync(values, set, to as boolean);
    case 'lossImpl':
      return writeLoss(values, set, to as LossImpl);
    default:
      return undefined;
  }
}

/** The other switch is turned off only where it stands somewhere: two of them on is an error to transformers. */
function writeMixedPrecision(values: Values, set: SetField, to: MixedPrecision): Written {
  const off = (key: string): Written => (values.find(key) ? set(key, false) : wrote());
  if (to === 'no') return together(set('bf16', false), off('fp16'));
  return together(set(to, true), off(to === 'bf16' ? 'fp16' : 'bf16'));
}

function writeCheckpointing(
  values: Values,
  set: SetField,
  to: GradientCheckpointing,
  offloadField: string | undefined,
): Written {
  const parts: Written[] = [set('gradient_checkpointing', to.enabled)];
  if (!to.enabled) {
    // TRL offloads without checkpointing, too: then everything that is saved.
    if (offloadField !== undefined) parts.push(writeSwitch(values, set, offloadField, to.offload));
    return together(...parts);
  }
  const found = values.find('gradient_checkpointing_kwargs');
  const read = found && orNull(toMap)(found.raw);
  if (read && !read.ok) return cannot('gradient_checkpointing_kwargs cannot be read, so nothing is added to it');
  const before = read?.value ?? {};
  const byField = offloadField !== undefined && before.offload !== true;
  if (byField) parts.push(writeSwitch(values, set, offloadField, to.offload));
  const wanted: Record<string, FileValue> = {
    use_reentrant: to.useReentrant,
    every_n_layers: to.everyNLayers,
    ...(byField ? {} : { offload: to.offload }),
  };
  const plain: Record<string, FileValue> = { use_reentrant: false, every_n_layers: 1, offload: false };
  // Torch itself takes use_reentrant=True for kwargs that do not name it, so then it is written out.
  const stands = (key: string): FileValue | undefined =>
    before[key] ?? (key === 'use_reentrant' && Object.keys(before).length > 0 ? undefined : plain[key]);
  const changed = Object.entries(wanted).filter(([key, value]) => stands(key) !== value);
  if (changed.length > 0) {
    const missing = 'use_reentrant' in before ? {} : { use_reentrant: to.useReentrant };
    parts.push(set('gradient_checkpointing_kwargs', { ...before, ...missing, ...Object.fromEntries(changed) }));
  }
  return together(...parts);
}

/** Two levels down, beside whatever else stands there. */
function writeSync(values: Values, set: SetField, to: boolean): Written {
  const found = values.find('accelerator_config');
  const config = found && orNull(toMap)(found.raw);
  const accumulation = orNull(toMap)(config?.ok ? (config.value?.gradient_accumulation_kwargs ?? null) : null);
  if ((config && !config.ok) || !accumulation.ok) {
    return cannot('accelerator_config is a file or cannot be read, so nothing is added to it');
  }
  return set('accelerator_config', {
    ...config?.value,
    gradient_accumulation_kwargs: { ...accumulation.value, sync_each_batch: to },
  });
}

/** A boolean that is false by default: written only where it would change something. */
function writeSwitch(values: Values, set: SetField, key: string, to: boolean): Written {
  const found = values.find(key);
  const now = found ? toBoolean(found.raw) : undefined;
  const stands = now?.ok ? now.value : false;
  return stands === to ? wrote() : set(key, to);
}

function writeLoss(values: Values, set: SetField, to: LossImpl): Written {
  if (to === 'chunked') return cannot('transformers has no chunked loss');
  if (to === 'full' && !values.find('use_liger_kernel', 'use_liger')) return wrote();
  return set('use_liger_kernel', to === 'fused');
}
