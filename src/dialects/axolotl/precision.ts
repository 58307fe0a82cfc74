import type { FloatDType } from '../../core/index.ts';
import type { MixedPrecision, Origin, TrainingSpec } from '../../spec/index.ts';
import { orNull, toBoolean } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { AXOLOTL } from './fields.ts';

/**
 * What weights are loaded in, and autocast, which the same keys decide. `bf16` absent is `auto`: on where the card has it, as
 * is taken for granted here, unless `fp16` is on. Source: utils/config/__init__.py `resolve_dtype`, core/builders/base.py
 * `_configure_precision_settings`.
 */
export function readPrecision(reader: SettingReader): TrainingSpec {
  reader.note('fp8', 'float32');
  const isOn = (key: string) => {
    const given = reader.given([key], orNull(toBoolean));
    return given?.value === true ? given : undefined;
  };
  const fp16 = isOn('fp16');
  const pure = isOn('bfloat16');
  const half = isOn('float16');
  const bf16 = reader.values.find('bf16');
  reader.note('bf16');
  const word = bf16 === undefined ? 'auto' : String(bf16.raw).toLowerCase();
  const off = /^(?:false|no|0|n|f)$/.test(word) || (word === 'auto' && fp16 !== undefined);
  if (!off || pure) {
    const origin: Origin = (off ? pure!.origin : bf16?.origin) ?? AXOLOTL;
    const mixedPrecision: MixedPrecision = word === 'full' && !pure ? 'no' : 'bf16';
    return { dtype: { value: 'bf16', origin }, mixedPrecision: { value: mixedPrecision, origin } };
  }
  const eight = isOn('load_in_8bit');
  const sixteen = fp16 ?? half ?? eight;
  const dtype: FloatDType = sixteen ? 'fp16' : 'fp32';
  const origin: Origin = sixteen?.origin ?? bf16?.origin ?? AXOLOTL;
  const autocast = fp16 ? { value: 'fp16' as const, origin: fp16.origin } : { value: 'no' as const, origin };
  return { dtype: { value: dtype, origin }, mixedPrecision: autocast };
}
