import type { FloatDType } from '../../core/index.ts';
import type { AttnImplementation, Lora, Method, MixedPrecision, Quantization, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { orNull, toBoolean } from '../hf-argparser/convert.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { type SetField, writeTrainingArguments } from '../hf-trainer/write-arguments.ts';
import { BITS_KEYS, SAVED_KEYS, TARGET_KEYS, TYPE_KEYS } from './adapter.ts';
import { EVAL_KEYS, MICRO_KEYS, type SwiftDetail } from './read.ts';

const NAMES: Readonly<Record<FloatDType, string>> = { fp32: 'float32', bf16: 'bfloat16', fp16: 'float16' };

/** Writes into the file, or into the flag that wins over it, in the words of the release that the launch is written for. */
export function writeSwift(
  layer: Layer<SwiftDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values, version, objective } = detail;
  const two = version.major === 2;
  const set: SetField = (key, value) => values.assign(key, value);
  switch (setting) {
    case 'perDeviceTrainBatchSize':
      return together(
        assignAs(detail, MICRO_KEYS, two, to as number),
        // A batch that the trainer searches for itself would not be the one it is told.
        isOn(detail, 'auto_find_batch_size') ? set('auto_find_batch_size', false) : wrote(),
      );
    case 'perDeviceEvalBatchSize':
      return assignAs(detail, EVAL_KEYS, two, to as number);
    case 'maxLength':
      if (objective === 'grpo') return set('max_completion_length', to as number);
      return isOn(detail, 'packing') && values.find('packing_length')
        ? set('packing_length', to as number)
        : set('max_length', to as number);
    case 'packing':
    case 'paddingFree':
      return writeFlat(detail, setting, to as boolean, spec.attnImplementation?.value);
    case 'attnImplementation':
      return writeAttention(detail, to as AttnImplementation);
    case 'dtype':
      return spec.dtype?.value === to
        ? wrote()
        : writeDtype(detail, to as FloatDType | 'auto', spec.mixedPrecision?.value ?? null);
    case 'mixedPrecision':
      return spec.mixedPrecision?.value === to ? wrote() : writePrecision(detail, to as MixedPrecision);
    case 'method':
      return spec.method?.value === to ? wrote() : writeMethod(detail, to as Method);
    case 'quantization':
      return writeQuantization(detail, to as Quantization | null);
    case 'lora':
      return writeLora(detail, to as Lora | null);
    case 'resumeFromCheckpoint':
      return set('resume_from_checkpoint', to as FileValue);
    default:
      return writeTrainingArguments(values, set, setting, to);
  }
}

const isOn = ({ values }: SwiftDetail, key: string): boolean => {
  const found = values.find(key);
  const read = found && orNull(toBoolean)(found.raw);
  return read?.ok === true && read.value === true;
};

/** Of the names of one field the one that was used; else the older in a launch of release 2. */
function assignAs({ values }: SwiftDetail, keys: readonly string[], older: boolean, value: FileValue): Written {
  const found = values.find(...keys);
  return values.assign(found?.key ?? (older ? keys.at(-1)! : keys[0]!), value);
}

function writeFlat(
  detail: SwiftDetail,
  setting: 'packing' | 'paddingFree',
  to: boolean,
  attention: AttnImplementation | null | undefined,
): Written {
  const key = setting === 'packing' ? 'packing' : 'padding_free';
  if (setting === 'paddingFree' && !to && isOn(detail, 'packing'))
    return cannot('packed rows go without padding in any case');
  if (to && !attention?.startsWith('flash_')) return cannot(`${key} needs flash attention in ms-swift`);
  if (isOn(detail, key) === to) return wrote();
  return detail.values.assign(key, to);
}

const ATTENTIONS: Readonly<Partial<Record<AttnImplementation, string>>> = {
  eager: 'eager',
  sdpa: 'sdpa',
  flash_attention_2: 'flash_attn',
  flash_attention_3: 'flash_attention_3',
  flex_attention: 'flex_attention',
};

function writeAttention(detail: SwiftDetail, to: AttnImplementation): Written {
  const flat = isOn(detail, 'packing') || isOn(detail, 'padding_free');
  if (flat && !to.startsWith('flash_')) return cannot('packing and padding_free need flash attention in ms-swift');
  if (detail.version.major === 2) {
    return to === 'flash_attention_2' || to === 'sdpa'
      ? detail.values.assign('use_flash_attn', to !== 'sdpa')
      : cannot(`ms-swift 2 has no ${to}`);
  }
  return detail.values.assign('attn_impl', ATTENTIONS[to]!);
}

/** Autocast follows the dtype unless its own switches say otherwise, so what holds now is written out. */
function writeDtype(detail: SwiftDetail, to: FloatDType | 'auto', mixed: MixedPrecision | null): Written {
  if (to === 'auto') return cannot('a dtype that is given would have to be taken out');
  const { values, version } = detail;
  const own = assignAs(detail, ['torch_dtype', 'dtype'], version.major === 2, version.major === 2 ? to : NAMES[to]);
  const follows = to === 'bf16' ? 'bf16' : 'fp16';
  return mixed === follows && !values.find('bf16', 'fp16')
    ? own
    : together(own, writePrecision(detail, mixed ?? follows));
}

function writePrecision({ values }: SwiftDetail, to: MixedPrecision): Written {
  return together(values.assign('bf16', to === 'bf16'), values.assign('fp16', to === 'fp16'));
}

const typeOf = ({ values }: SwiftDetail): string => String(values.find(...TYPE_KEYS)?.raw ?? 'lora');

function writeType(detail: SwiftDetail, to: 'lora' | 'full'): Written {
  if (typeOf(detail) === to) return wrote();
  const { values, version } = detail;
  const key = values.find(...TYPE_KEYS)?.key ?? { 2: 'sft_type', 3: 'train_type', 4: 'tuner_type' }[version.major];
  return values.assign(key, to);
}

const bitsKey = ({ values, version }: SwiftDetail): string =>
  values.find(...BITS_KEYS)?.key ?? (version.major === 2 ? 'quantization_bit' : 'quant_bits');

/** bitsandbytes has its own word beside the bits. */
function quantise(detail: SwiftDetail, bits: 4 | 8): Written {
  const { values } = detail;
  const method = values.find('quant_method')?.raw === 'bnb' ? wrote() : values.assign('quant_method', 'bnb');
  const stands = Number(values.find(...BITS_KEYS)?.raw) === bits;
  return together(writeType(detail, 'lora'), method, stands ? wrote() : values.assign(bitsKey(detail), bits));
}

function dequantise(detail: SwiftDetail): Written {
  const found = detail.values.find(...BITS_KEYS);
  if (!found || Number(found.raw) === 0) return wrote();
  if (detail.version.major === 2) return detail.values.assign(found.key, 0);
  return found.place.kind === 'file'
    ? cannot(`${found.key} would have to be taken out of the config`)
    : cannot(`${found.key} would have to be taken out of the command`);
}

function writeMethod(detail: SwiftDetail, to: Method): Written {
  const plain = isOn(detail, 'use_dora') ? detail.values.assign('use_dora', false) : wrote();
  switch (to) {
    case 'full':
      return together(writeType(detail, 'full'), dequantise(detail));
    case 'lora':
      return together(writeType(detail, 'lora'), dequantise(detail), plain);
    case 'dora':
      return together(writeType(detail, 'lora'), dequantise(detail), detail.values.assign('use_dora', true));
    case 'qlora':
      return quantise(detail, 4);
    default:
      return cannot(`ms-swift has no ${to} that is estimated`);
  }
}

function writeQuantization(detail: SwiftDetail, to: Quantization | null): Written {
  if (to === null) return dequantise(detail);
  if (to.upcastRestToFp32) return cannot('ms-swift does not prepare a quantised model for k-bit training');
  if (to.quantType === 'gptq' || to.quantType === 'awq') return cannot(`${to.quantType} comes with the checkpoint`);
  const { values, version } = detail;
  const two = version.major === 2;
  if (to.bits === 8) return quantise(detail, 8);
  const switchOf = (key: string, value: FileValue, otherwise: FileValue): Written => {
    const stands = values.find(key)?.raw ?? otherwise;
    return String(stands).toLowerCase() === String(value) ? wrote() : values.assign(key, value);
  };
  const dtype = String(values.find('torch_dtype', 'dtype')?.raw ?? 'bfloat16');
  const follows = /^(?:float16|fp16|float32|fp32)$/.test(dtype) ? 'fp32' : 'bf16';
  const key = two ? 'bnb_4bit_comp_dtype' : 'bnb_4bit_compute_dtype';
  const compute =
    values.find(key) || to.computeDtype !== follows
      ? values.assign(key, two ? to.computeDtype : NAMES[to.computeDtype])
      : wrote();
  return together(
    quantise(detail, 4),
    switchOf('bnb_4bit_quant_type', to.quantType, 'nf4'),
    switchOf('bnb_4bit_use_double_quant', to.doubleQuant, true),
    compute,
  );
}

function writeLora(detail: SwiftDetail, to: Lora | null): Written {
  if (to === null) return writeType(detail, 'full');
  const { values, version } = detail;
  if (values.find('target_regex', 'lora_target_regex')) return cannot('target_regex decides the layers');
  if (to.targetModules === 'default' && version.major !== 2)
    return cannot('ms-swift has no list of targets for each architecture');
  const two = version.major === 2;
  const number = (keys: readonly string[], value: number, otherwise: number): Written => {
    const found = values.find(...keys);
    return Number(found?.raw ?? otherwise) === value ? wrote() : values.assign(found?.key ?? keys[0]!, value);
  };
  const targets =
    to.targetModules === 'all-linear'
      ? [two ? 'ALL' : 'all-linear']
      : to.targetModules === 'default'
        ? ['DEFAULT']
        : [...to.targetModules];
  const standing = values.find(...TARGET_KEYS);
  const now = standing === undefined ? [two ? 'DEFAULT' : 'all-linear'] : [standing.raw].flat();
  const saved = values.find(...SAVED_KEYS);
  const listed = (value: readonly string[]): FileValue => (value.length === 1 ? value[0]! : [...value]);
  const dtype = values.find('lora_dtype');
  return together(
    writeType(detail, 'lora'),
    number(['lora_rank'], to.r, 8),
    number(['lora_alpha'], to.loraAlpha, 32),
    number(['lora_dropout', 'lora_dropout_p'], to.loraDropout, 0.05),
    JSON.stringify(now) === JSON.stringify(targets)
      ? wrote()
      : values.assign(standing?.key ?? (two ? 'lora_target_modules' : 'target_modules'), listed(targets)),
    dtype || to.adapterDtype !== 'fp32'
      ? values.assign('lora_dtype', two ? to.adapterDtype : NAMES[to.adapterDtype])
      : wrote(),
    to.modulesToSave.length > 0
      ? values.assign(saved?.key ?? 'modules_to_save', listed(to.modulesToSave))
      : saved && JSON.stringify(saved.raw) !== '[]'
        ? cannot(`${saved.key} would have to be taken out`)
        : wrote(),
  );
}
