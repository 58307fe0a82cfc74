import { type Diagnostic, error, type FloatDType, parseFloatDType, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type Lora,
  type Method,
  type Quantization,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import {
  type Converted,
  orNull,
  toBoolean,
  toInteger,
  toNumber,
  toOneOf,
  toText,
  toWords,
} from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import type { SwiftVersion } from './versions.ts';

export const TYPE_KEYS = ['tuner_type', 'train_type', 'sft_type'];
export const BITS_KEYS = ['quant_bits', 'quantization_bit'];
export const TARGET_KEYS = ['target_modules', 'lora_target_modules'];
export const SAVED_KEYS = ['modules_to_save', 'lora_modules_to_save'];

const toDType = (raw: FileValue): Converted<FloatDType | null> => {
  if (raw === null || /^(?:none|null|auto)$/i.test(String(raw))) return { ok: true, value: null };
  const dtype = parseFloatDType(String(raw));
  return dtype ? { ok: true, value: dtype } : { ok: false, expected: 'bfloat16, float16 or float32' };
};

/** `torch_dtype` (`dtype` in release 2): what weights are loaded in; null: as the checkpoint says. */
export const readTorchDtype = (reader: SettingReader, { origin }: SwiftVersion): Setting<FloatDType> =>
  reader.setting<FloatDType | null>(['torch_dtype', 'dtype'], toDType, { value: null, origin }) as Setting<FloatDType>;

/** Method, adapter, quantization. Adapters are fp32 unless `lora_dtype` says else; k-bit preparation is never called. */
export function readAdapter(
  reader: SettingReader,
  version: SwiftVersion,
  loaded: FloatDType | null,
): { readonly spec: TrainingSpec; readonly diagnostics: readonly Diagnostic[] } {
  const { origin } = version;
  reader.note(
    'lora_rank',
    'lora_alpha',
    'lora_dropout',
    'lora_dropout_p',
    'lora_bias',
    'lora_dtype',
    'use_rslora',
    'use_dora',
  );
  reader.note('target_regex', 'tuner_backend', ...TARGET_KEYS, ...SAVED_KEYS, 'quant_method', 'bnb_4bit_quant_storage');
  const type = reader.setting<string>(TYPE_KEYS, toText, { value: 'lora', origin });
  const quantization = readQuantization(reader, version, loaded);
  const { setting: quantized, diagnostics: ofQuantization } = quantization;
  const diagnostics: Diagnostic[] = [...ofQuantization];
  const common: TrainingSpec = quantized ? { quantization: quantized } : {};
  if (type.value === 'full') {
    if (quantized) {
      diagnostics.push(
        error('quantized-full', 'a quantised model is trained only with an adapter', {
          location: formatOrigin(quantized.origin),
          help: `set ${reader.values.find(...TYPE_KEYS)?.key ?? 'tuner_type'} lora, or take the quantization out`,
        }),
      );
    }
    return { spec: { ...common, method: { value: 'full', origin: type.origin } }, diagnostics };
  }
  if (type.value !== 'lora') {
    const message = `${reader.values.find(...TYPE_KEYS)?.key} ${type.value} is not estimated`;
    if (type.value !== null)
      diagnostics.push(warning('not-estimated', message, { location: formatOrigin(type.origin) }));
    return { spec: { ...common, method: { value: null, origin: type.origin } }, diagnostics };
  }
  const dora = reader.given(['use_dora'], toBoolean);
  const method: Setting<Method> =
    quantized && quantized.value?.bits !== 8
      ? { value: 'qlora', origin: quantized.origin }
      : dora?.value
        ? { value: 'dora', origin: dora.origin }
        : { value: 'lora', origin: type.origin };
  return { spec: { ...common, method, lora: readLora(reader, version) }, diagnostics };
}

function readLora(reader: SettingReader, { origin, targets: preset }: SwiftVersion): Setting<Lora> {
  const r = reader.setting<number>(['lora_rank'], toInteger(1), { value: 8, origin });
  const alpha = reader.setting<number>(['lora_alpha'], toNumber, { value: 32, origin });
  const dropout = reader.setting<number>(['lora_dropout', 'lora_dropout_p'], toNumber, { value: 0.05, origin });
  const targets = reader.given(TARGET_KEYS, toWords);
  const saved = reader.given(SAVED_KEYS, toWords);
  const dtype = reader.given(['lora_dtype'], toDType);
  const regex = reader.given(['target_regex', 'lora_target_regex'], orNull(toText));
  if (r.value === null || alpha.value === null || dropout.value === null || regex?.value) {
    return { value: null, origin: regex?.origin ?? r.origin };
  }
  const names = targets?.value ?? [];
  const word = names.length === 1 ? names[0]!.toLowerCase() : '';
  const value: Lora = {
    r: r.value,
    loraAlpha: alpha.value,
    loraDropout: dropout.value,
    targetModules:
      names.length === 0
        ? preset
        : word === 'all-linear' || word === 'all'
          ? 'all-linear'
          : word === 'default'
            ? 'default'
            : names,
    adapterDtype: dtype?.value ?? 'fp32',
    modulesToSave: saved?.value ?? [],
  };
  return { value, origin: r.origin };
}

function readQuantization(
  reader: SettingReader,
  { origin, major }: SwiftVersion,
  loaded: FloatDType | null,
): { readonly setting: Setting<Quantization> | undefined; readonly diagnostics: readonly Diagnostic[] } {
  const bits = reader.given(BITS_KEYS, orNull(toInteger(0)));
  const method = reader.given(['quant_method'], orNull(toText));
  // Release 2 has bitsandbytes where only bits are given, later ones quantise by the method's word.
  const on = bits?.value && (method?.value || major === 2);
  const type = reader.setting<'nf4' | 'fp4'>(['bnb_4bit_quant_type'], toOneOf('nf4', 'fp4'), { value: 'nf4', origin });
  const double = reader.setting<boolean>(['bnb_4bit_use_double_quant'], toBoolean, { value: true, origin });
  const compute = reader.given(['bnb_4bit_compute_dtype', 'bnb_4bit_comp_dtype'], toDType);
  if (!bits?.value && !method?.value) return { setting: undefined, diagnostics: [] };
  const where = (bits ?? method)!.origin;
  if (!on) {
    const message = bits?.value
      ? 'quant_bits does nothing without quant_method'
      : 'quant_method does nothing without quant_bits';
    return {
      setting: undefined,
      diagnostics: [
        warning('no-effect', message, {
          location: formatOrigin(where),
          help: 'write --quant_method bnb --quant_bits 4',
        }),
      ],
    };
  }
  if ((method?.value ?? 'bnb') !== 'bnb' || (bits.value !== 4 && bits.value !== 8)) {
    const message = `quantization to ${bits.value} bits by ${method?.value ?? 'bnb'} is not estimated`;
    return {
      setting: { value: null, origin: where },
      diagnostics: [warning('not-estimated', message, { location: formatOrigin(where) })],
    };
  }
  const value: Quantization = {
    bits: bits.value,
    quantType: bits.value === 8 ? 'int8' : (type.value ?? 'nf4'),
    doubleQuant: bits.value === 4 && double.value !== false,
    // fp16 and fp32 weights compute in fp32.
    computeDtype: compute?.value ?? (loaded === 'fp16' || loaded === 'fp32' ? 'fp32' : 'bf16'),
    upcastRestToFp32: false,
  };
  return { setting: { value, origin: where }, diagnostics: [] };
}
