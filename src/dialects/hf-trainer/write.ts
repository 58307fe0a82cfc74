import type { FloatDType } from '../../core/index.ts';
import type { SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, Written } from '../dialect.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { TRAINING_ARGUMENT_NAMES } from './fields.ts';
import { ATTENTION_KEYS, DTYPE_KEYS, type HfDetail, resumesByItself, scriptResume } from './read.ts';
import { parsesArguments } from './script-values.ts';
import { LENGTH_KEYS } from './sequence-length.ts';
import { fieldSetter, writeTrainingArguments } from './write-arguments.ts';

const DTYPE_NAMES: Readonly<Record<FloatDType, string>> = { fp32: 'float32', bf16: 'bfloat16', fp16: 'float16' };

/** Writes by the flags that TrainingArguments has, and by flags of the script where it has them. */
export function writeHfTrainer(layer: Layer<HfDetail>, setting: SettingName, to: unknown): Written | undefined {
  const { values, script } = layer.reading.detail;
  const set = fieldSetter(values, (key) => permitted(layer.reading.detail, key));
  const written = withoutSearch(values, setting, writeTrainingArguments(values, set, setting, to));
  if (written) return written;
  switch (setting) {
    case 'maxLength':
      return ownFlag(layer.reading.detail, LENGTH_KEYS, to as number, 'length');
    case 'attnImplementation':
      return ownFlag(layer.reading.detail, ATTENTION_KEYS, to as string, 'attention');
    case 'dtype':
      return ownFlag(layer.reading.detail, DTYPE_KEYS, to === 'auto' ? 'auto' : DTYPE_NAMES[to as FloatDType], 'dtype');
    case 'resumeFromCheckpoint': {
      if (resumesByItself(script)) return wrote();
      const resume = scriptResume(script);
      return resume.kind === 'supported' ? set('resume_from_checkpoint', to as FileValue) : cannot(resume.reason);
    }
    case 'method':
    case 'quantization':
    case 'lora':
      return cannot('the script decides the training method itself');
    default:
      return undefined;
  }
}

/**
 * A trainer that is told a batch must keep it: its own search on out-of-memory, which leaves the accumulation as it is, is turned off
 * along with it. Two searchers must not nest.
 */
export function withoutSearch(
  values: HfDetail['values'],
  setting: SettingName,
  written: Written | undefined,
): Written | undefined {
  const found = values.find('auto_find_batch_size');
  const searches = found !== undefined && /^(?:true|yes|on|t|y|1)$/i.test(String(found.raw));
  return written && searches && setting === 'perDeviceTrainBatchSize'
    ? together(written, values.assign('auto_find_batch_size', false))
    : written;
}

/**
 * Whether a flag that stands nowhere may be added. A script with a parser of its own takes only what its text names; one
 * that cannot be read, or leaves parsing to another file, is taken for an HfArgumentParser script by the flags it was given.
 */
function permitted({ script, values }: HfDetail, key: string): true | string {
  if (parsesArguments(script) === false) return `${script.path} takes no flags`;
  if (script.mentions(key)) return true;
  const ownParser = script.mentions('ArgumentParser') && !script.mentions('HfArgumentParser');
  if (ownParser) return `${script.path} has no --${key}`;
  if (!TRAINING_ARGUMENT_NAMES.has(key)) return `${script.path ?? 'the script'} is not known to have --${key}`;
  const proven =
    script.mentions('HfArgumentParser') || values.all().some((found) => TRAINING_ARGUMENT_NAMES.has(found.key));
  return proven ? true : `${script.path ?? 'the script'} is not known to have --${key}`;
}

/** A setting that scripts name differently: the flag that was given, else the first name that the text declares. */
function ownFlag(detail: HfDetail, keys: readonly string[], value: FileValue, what: string): Written {
  if (parsesArguments(detail.script) === false) return cannot(`${detail.script.path} takes no flags`);
  const found = detail.values.find(...keys);
  if (found) return detail.values.assign(found.key, value);
  const declared = keys.find((key) =>
    new RegExp(`["']--${key}["']|^\\s+${key}\\s*:`, 'm').test(detail.script.text ?? ''),
  );
  return declared
    ? detail.values.assign(declared, value)
    : cannot(`the script has no flag for the ${what} that is known here`);
}
