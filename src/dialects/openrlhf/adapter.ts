import { type Diagnostic, error } from '../../core/index.ts';
import { formatOrigin, type Lora, type Setting, type TrainingSpec } from '../../spec/index.ts';
import { toBoolean, toInteger, toNumber, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { NAMES } from './fields.ts';
import type { OpenRlhfVersion } from './versions.ts';

/**
 * A rank above 0 trains adapters; DeepSpeed casts them with the rest of the module. A base in 4 bits is NF4, scales quantised
 * again. Source: openrlhf/models/actor.py.
 */
export function readAdapter(
  reader: SettingReader,
  { origin }: OpenRlhfVersion,
): { readonly spec: TrainingSpec; readonly diagnostics: readonly Diagnostic[] } {
  const rank = reader.setting<number>(NAMES.rank, toInteger(0), { value: 0, origin });
  const four = reader.given(NAMES.loadIn4bit, toBoolean);
  const quantized = four?.value ? four : undefined;
  if (rank.value === null) return { spec: { method: { value: null, origin: rank.origin } }, diagnostics: [] };
  if (rank.value === 0) {
    const diagnostics = quantized ? [quantizedFull(quantized.origin)] : [];
    return { spec: { method: { value: 'full', origin: rank.origin } }, diagnostics };
  }
  const alpha = reader.setting<number>(NAMES.alpha, toInteger(1), { value: 16, origin });
  const dropout = reader.setting<number>(NAMES.dropout, toNumber, { value: 0, origin });
  const targets = reader.setting<readonly string[]>(NAMES.targets, toWords, { value: ['all-linear'], origin });
  const everything = targets.value?.length === 1 && targets.value[0] === 'all-linear';
  const known = alpha.value !== null && dropout.value !== null && targets.value !== null;
  const lora: Setting<Lora> = {
    value: known
      ? {
          r: rank.value,
          loraAlpha: alpha.value,
          loraDropout: dropout.value,
          targetModules: everything ? 'all-linear' : targets.value,
          adapterDtype: 'bf16',
          modulesToSave: [],
        }
      : null,
    origin: rank.origin,
  };
  return {
    spec: {
      method: quantized ? { value: 'qlora', origin: quantized.origin } : { value: 'lora', origin: rank.origin },
      lora,
      ...(quantized
        ? {
            quantization: {
              value: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false },
              origin: quantized.origin,
            },
          }
        : {}),
    },
    diagnostics: [],
  };
}

const quantizedFull = (origin: Parameters<typeof formatOrigin>[0]): Diagnostic =>
  error('quantized-full', 'a base in 4 bits is trained only with adapters', {
    location: formatOrigin(origin),
    help: 'give a LoRA rank above 0, or take the 4 bits out',
  });
