import { type Diagnostic, error, type FloatDType, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type Lora,
  type Method,
  type Origin,
  type Quantization,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import { type Converted, orNull, toBoolean, toInteger, toNumber, toOneOf, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import type { LlamaFactoryVersion } from './versions.ts';

export interface AdapterReading {
  readonly spec: TrainingSpec;
  readonly diagnostics: readonly Diagnostic[];
}

/** `q_proj,v_proj`, or a list in a file. Source: finetuning_args.py `split_arg`. */
export const toNames = (raw: FileValue): Converted<readonly string[]> => {
  const words = typeof raw === 'string' ? raw.split(',').map((word) => word.trim()) : raw;
  return Array.isArray(words) && words.every((word) => typeof word === 'string' && word !== '')
    ? { ok: true, value: words as string[] }
    : { ok: false, expected: 'names with commas between them' };
};

/**
 * Method, adapter, quantization and the dtype of the weights. What is trained is cast to fp32 unless `pure_bf16`, BAdam, or
 * ZeRO-3 without quantization; the rest stays in the dtype of the checkpoint. Source: model/adapter.py `init_adapter`,
 * model/loader.py `load_model`.
 */
export function readAdapter(
  reader: SettingReader,
  version: LlamaFactoryVersion,
  shardsWithZero3: boolean,
): AdapterReading {
  const { origin } = version;
  reader.note('lora_rank', 'lora_alpha', 'lora_dropout', 'lora_target', 'additional_target', 'use_rslora', 'use_dora');
  const type = reader.setting(['finetuning_type'], toOneOf('lora', 'oft', 'freeze', 'full'), { value: 'lora', origin });
  const pure = reader.given(['pure_bf16'], toBoolean);
  const badam = reader.given(['use_badam'], toBoolean);
  const quantization = readQuantization(reader, version);
  const diagnostics = [...quantization.diagnostics];
  const quantized = quantization.setting !== undefined;
  const fourBits = quantized && quantization.setting?.value?.bits !== 8;
  if (quantized && (type.value === 'full' || type.value === 'freeze'))
    diagnostics.push(quantizedFull(quantization.origin!));
  const trainsAll = type.value === 'full' || type.value === 'freeze';
  const dtype: NonNullable<TrainingSpec['dtype']> = pure?.value
    ? { value: 'bf16', origin: pure.origin }
    : trainsAll && badam?.value !== true && !shardsWithZero3
      ? { value: 'fp32', origin: { kind: 'derived', from: 'trained weights are cast to fp32' } }
      : { value: 'auto', origin };
  const common: TrainingSpec = { dtype, ...(quantization.setting ? { quantization: quantization.setting } : {}) };
  if (type.value === 'full')
    return { spec: { ...common, method: { value: 'full', origin: type.origin } }, diagnostics };
  if (type.value !== 'lora') {
    if (type.value !== null) diagnostics.push(notEstimated(type.value, type.origin));
    return { spec: { ...common, method: { value: null, origin: type.origin } }, diagnostics };
  }
  const dora = reader.given(['use_dora'], toBoolean);
  // A base in 8 bits is what its users call LoRA.
  const method: Setting<Method> = fourBits
    ? { value: 'qlora', origin: quantization.origin! }
    : dora?.value
      ? { value: 'dora', origin: dora.origin }
      : { value: 'lora', origin: type.origin };
  return { spec: { ...common, method, lora: readLora(reader, version) }, diagnostics };
}

const quantizedFull = (origin: Origin): Diagnostic =>
  error('quantized-full', 'LLaMA-Factory trains a quantised model only with finetuning_type lora or oft', {
    location: formatOrigin(origin),
    help: 'set finetuning_type: lora, or take quantization_bit out',
  });

const notEstimated = (type: string, origin: Origin): Diagnostic =>
  warning('not-estimated', `finetuning_type ${type} trains a part of the weights that is not estimated`, {
    location: formatOrigin(origin),
    help: 'run with --mode warn: snug then watches the run',
  });

function readLora(reader: SettingReader, version: LlamaFactoryVersion): Setting<Lora> {
  const { origin } = version;
  const r = reader.setting(['lora_rank'], toInteger(1), { value: version.loraRank, origin });
  const alpha = reader.given(['lora_alpha'], orNull(toNumber));
  const dropout = reader.setting(['lora_dropout'], toNumber, { value: 0, origin });
  const targets = reader.setting(['lora_target'], toNames, { value: ['all'], origin });
  const saved = reader.given(['additional_target'], orNull(toNames));
  if (r.value === null || dropout.value === null || targets.value === null) return { value: null, origin: r.origin };
  const value: Lora = {
    r: r.value,
    // 0 counts as absent.
    loraAlpha: alpha?.value || r.value * version.loraAlphaFactor,
    loraDropout: dropout.value,
    targetModules: targets.value.length === 1 && targets.value[0] === 'all' ? 'all-linear' : targets.value,
    // PEFT casts adapters up whatever the base is loaded in.
    adapterDtype: 'fp32',
    modulesToSave: saved?.value ?? [],
  };
  return { value, origin: r.origin };
}

interface QuantizationReading {
  readonly setting?: Setting<Quantization>;
  readonly origin?: Origin;
  readonly diagnostics: readonly Diagnostic[];
}

/** bitsandbytes alone is estimated. peft's k-bit preparation is never called. Source: model_utils/quantization.py. */
function readQuantization(reader: SettingReader, version: LlamaFactoryVersion): QuantizationReading {
  reader.note('quantization_type', 'double_quantization', 'quantization_device_map');
  const bits = reader.given(['quantization_bit'], orNull(toInteger(1)));
  const method = reader.given(['quantization_method'], toText);
  if (!bits?.value) return { diagnostics: [] };
  const { origin } = bits;
  const other = method && method.value !== 'bnb' && method.value !== 'bitsandbytes';
  if (other || (bits.value !== 4 && bits.value !== 8)) {
    const message = `quantization to ${bits.value} bits by ${method?.value ?? 'bnb'} is not estimated`;
    return {
      setting: { value: null, origin },
      origin,
      diagnostics: [warning('not-estimated', message, { location: formatOrigin(method?.origin ?? origin) })],
    };
  }
  const type = reader.setting<'nf4' | 'fp4'>(['quantization_type'], toOneOf('nf4', 'fp4'), {
    value: 'nf4',
    origin: version.origin,
  });
  const double = reader.setting(['double_quantization'], toBoolean, { value: true, origin: version.origin });
  const value: Quantization = {
    bits: bits.value,
    quantType: bits.value === 8 ? 'int8' : (type.value ?? 'nf4'),
    doubleQuant: bits.value === 4 && (double.value ?? true),
    computeDtype: computeDtype(reader),
    upcastRestToFp32: false,
  };
  return { setting: { value, origin }, origin, diagnostics: [] };
}

/** Without bf16 and fp16 it is inferred from the checkpoint, which is bf16 for about all of them. */
function computeDtype(reader: SettingReader): FloatDType {
  const isOn = (key: string): boolean => reader.given([key], orNull(toBoolean))?.value === true;
  return !isOn('bf16') && !isOn('pure_bf16') && isOn('fp16') ? 'fp16' : 'bf16';
}
