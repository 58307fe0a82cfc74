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
import { orNull, toBoolean, toInteger, toMap, toNumber, toText, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { AXOLOTL } from './fields.ts';

export interface AdapterReading {
  readonly spec: TrainingSpec;
  readonly diagnostics: readonly Diagnostic[];
}

const LORA_KEYS = ['lora_r', 'lora_alpha', 'lora_dropout', 'lora_target_modules', 'lora_target_linear'];

/**
 * `adapter` decides: absent is full training, `lora` with `load_in_8bit` and `qlora` with `load_in_4bit` are quantised. After
 * k-bit preparation what is not quantised goes back to the dtype of the run. Source: loaders/model.py, loaders/adapter.py.
 */
export function readAdapter(reader: SettingReader, dtype: FloatDType, fsdp: boolean): AdapterReading {
  reader.note(...LORA_KEYS, 'lora_modules_to_save', 'peft_use_rslora', 'lora_model_dir', 'bnb_config_kwargs');
  const adapter = reader.given(['adapter'], orNull(toText));
  const four = on(reader, 'load_in_4bit');
  const eight = on(reader, 'load_in_8bit');
  const gptq = on(reader, 'gptq');
  if (!adapter?.value) {
    const quantized = four ?? eight;
    return {
      spec: { method: { value: 'full', origin: AXOLOTL } },
      diagnostics: [...(quantized ? [quantizedFull(quantized.origin)] : []), ...partly(reader)],
    };
  }
  if (adapter.value !== 'lora' && adapter.value !== 'qlora') {
    const message = `adapter ${adapter.value} is not estimated`;
    return {
      spec: { method: { value: null, origin: adapter.origin } },
      diagnostics: [warning('not-estimated', message, { location: formatOrigin(adapter.origin) })],
    };
  }
  if (adapter.value === 'qlora' && (!four || eight)) return notQlora(adapter.origin);
  const diagnostics: Diagnostic[] = [];
  if (adapter.value === 'lora' && four) {
    diagnostics.push(
      warning('no-effect', 'load_in_4bit does nothing with adapter: lora, so the base is not quantised', {
        location: formatOrigin(four.origin),
        help: 'write adapter: qlora',
      }),
    );
  }
  const bits = adapter.value === 'qlora' ? four : eight;
  const quantization = gptq
    ? gptqSetting(gptq.origin)
    : bits && readQuantization(reader, bits.origin, eight ? 8 : 4, dtype);
  const dora = on(reader, 'peft_use_dora');
  const method: Setting<Method> =
    adapter.value === 'qlora'
      ? { value: 'qlora', origin: adapter.origin }
      : dora
        ? { value: 'dora', origin: dora.origin }
        : { value: 'lora', origin: adapter.origin };
  const autocast = reader.given(['peft_autocast_adapter_dtype'], orNull(toBoolean));
  // PEFT casts adapters up, and FSDP wants one dtype for all (core/builders `ensure_dtype`).
  const adapterDtype = autocast?.value === false || fsdp ? dtype : 'fp32';
  return {
    spec: { method, lora: readLora(reader, adapter.origin, adapterDtype), ...(quantization ? { quantization } : {}) },
    diagnostics,
  };
}

const on = (reader: SettingReader, key: string): { value: true; origin: Origin } | undefined => {
  const given = reader.given([key], orNull(toBoolean));
  return given?.value === true ? { value: true, origin: given.origin } : undefined;
};

const gptqSetting = (origin: Origin): Setting<Quantization> => ({ value: null, origin });

const quantizedFull = (origin: Origin): Diagnostic =>
  error('quantized-full', 'axolotl loads a quantised model only with an adapter', {
    location: formatOrigin(origin),
    help: 'set adapter: qlora, or take load_in_4bit and load_in_8bit out',
  });

const notQlora = (origin: Origin): AdapterReading => ({
  spec: {},
  diagnostics: [
    error('bad-adapter', 'adapter qlora needs load_in_4bit: true and load_in_8bit: false', {
      location: formatOrigin(origin),
      help: 'write load_in_4bit: true, or adapter: lora for a base in 8 or 16 bits',
    }),
  ],
});

/** Only a part of the weights trained: fewer gradients and states than are counted. */
function partly(reader: SettingReader): readonly Diagnostic[] {
  return ['unfrozen_parameters', 'lisa_step_interval', 'spectrum_top_fraction'].flatMap((key) => {
    const found = reader.values.find(key);
    reader.note(key);
    if (!found) return [];
    const message = `${key} trains a part of the weights, and all of them are counted`;
    return [warning('not-estimated', message, { location: formatOrigin(found.origin) })];
  });
}

function readQuantization(
  reader: SettingReader,
  origin: Origin,
  bits: 4 | 8,
  dtype: FloatDType,
): Setting<Quantization> {
  const more = reader.given(['bnb_config_kwargs'], orNull(toMap))?.value ?? {};
  const value: Quantization = {
    bits,
    quantType: bits === 8 ? 'int8' : more.bnb_4bit_quant_type === 'fp4' ? 'fp4' : 'nf4',
    doubleQuant: bits === 4 && more.bnb_4bit_use_double_quant !== false,
    computeDtype: dtype,
    upcastRestToFp32: false,
  };
  return { value, origin };
}

function readLora(reader: SettingReader, adapter: Origin, adapterDtype: FloatDType): Setting<Lora> {
  const r = reader.given(['lora_r'], orNull(toInteger(1)));
  const alpha = reader.given(['lora_alpha'], orNull(toNumber));
  const dropout = reader.given(['lora_dropout'], orNull(toNumber));
  const linear = on(reader, 'lora_target_linear');
  const targets = reader.given(['lora_target_modules'], orNull(toWords))?.value;
  const saved = reader.given(['lora_modules_to_save'], orNull(toWords))?.value;
  if (!r?.value) return { value: null, origin: r?.origin ?? adapter };
  const named = targets && targets.length === 1 && targets[0] === 'all-linear' ? 'all-linear' : targets;
  const value: Lora = {
    r: r.value,
    // PEFT's own default where the config has none.
    loraAlpha: alpha?.value ?? 8,
    loraDropout: dropout?.value ?? 0,
    targetModules: linear ? 'all-linear' : named && named.length > 0 ? named : 'default',
    adapterDtype,
    modulesToSave: saved ?? [],
  };
  return { value, origin: r.origin };
}
