import type { Lora, Quantization, TrainingSpec } from '../../spec/index.ts';
import { orNull, toBoolean, toInteger, toNumber, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { AUTOTRAIN as origin } from './fields.ts';

const NF4: Quantization = {
  bits: 4,
  quantType: 'nf4',
  doubleQuant: false,
  computeDtype: 'fp16',
  upcastRestToFp32: true,
};

/**
 * `--peft` alone is QLoRA: 4 bits are the default. The base is loaded in fp32, or what is not quantised of it in fp16.
 * Source: trainers/clm/utils.py `get_model`.
 */
export function readAdapter(reader: SettingReader): TrainingSpec {
  const peft = reader.setting<boolean>(['peft'], toBoolean, { value: false, origin });
  const asked = reader.setting<string | null>(['quantization'], orNull(toText), { value: 'int4', origin });
  const r = reader.setting<number>(['lora_r'], toInteger(1), { value: 16, origin });
  const alpha = reader.setting<number>(['lora_alpha'], toNumber, { value: 32, origin });
  const dropout = reader.setting<number>(['lora_dropout'], toNumber, { value: 0.05, origin });
  const targets = reader.setting<string>(['target_modules'], toText, { value: 'all-linear', origin });
  if (!peft.value) {
    return {
      method: { value: peft.value === null ? null : 'full', origin: peft.origin },
      dtype: { value: 'fp32', origin },
    };
  }
  const words = (targets.value ?? '').split(',').map((word) => word.trim());
  const lora: Lora = {
    r: r.value ?? 16,
    loraAlpha: alpha.value ?? 32,
    loraDropout: dropout.value ?? 0.05,
    targetModules: words.length === 1 && words[0]!.toLowerCase() === 'all-linear' ? 'all-linear' : words,
    adapterDtype: 'fp32',
    modulesToSave: [],
  };
  const four = asked.value === 'int4';
  const quantized = four || asked.value === 'int8';
  const eight: Quantization = { ...NF4, bits: 8, quantType: 'int8' };
  return {
    method: { value: four ? 'qlora' : 'lora', origin: peft.origin },
    dtype: { value: quantized ? 'fp16' : 'fp32', origin },
    lora: { value: lora, origin: r.origin },
    ...(quantized ? { quantization: { value: four ? NF4 : eight, origin: asked.origin } } : {}),
  };
}
