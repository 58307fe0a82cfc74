import { type Diagnostic, type FloatDType, warning } from '../../core/index.ts';
import type { Lora, Method, Origin, Quantization, Setting, TrainingSpec } from '../../spec/index.ts';
import { toBoolean, toFloatDType, toInteger, toNumber, toOneOf, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { TRANSFORMERS } from './fields.ts';
import type { ScriptFacts } from './script.ts';

/** Flags that scripts turn an adapter on with, and those that size it. Each script picks its own; these are the common ones. */
const SWITCHES = [
  'use_peft',
  'use_lora',
  'use_peft_lora',
  'enable_lora',
  'lora_enable',
  'q_lora',
  'use_qlora',
  'qlora',
];
const RANKS = ['lora_r', 'lora_rank', 'lora_dim'];
const ALPHAS = ['lora_alpha'];
const DROPOUTS = ['lora_dropout'];
const TARGETS = ['lora_target_modules', 'lora_targets', 'lora_target'];
const SAVED = ['lora_modules_to_save', 'modules_to_save'];
export const FOUR_BIT = [
  'load_in_4bit',
  'use_4bit',
  'use_4bit_quantization',
  'use_4bit_quant',
  'q_lora',
  'use_qlora',
  'qlora',
];
export const EIGHT_BIT = ['load_in_8bit', 'use_8bit', 'use_8bit_quantization'];
const NESTED = ['use_bnb_nested_quant', 'use_nested_quant', 'double_quant', 'bnb_4bit_use_double_quant'];

const DEFAULT: Origin = { kind: 'default', ...TRANSFORMERS };

/**
 * Method, adapter and quantization of a script with flags of its own. Without any such flag: full, unless the script's
 * text works with PEFT, when only the script knows.
 */
export function readScriptLora(
  reader: SettingReader,
  script: ScriptFacts,
): { readonly spec: TrainingSpec; readonly diagnostics: readonly Diagnostic[] } {
  reader.note(...SAVED, ...ALPHAS, ...DROPOUTS, ...TARGETS, ...NESTED);
  const quantization = readQuantization(reader, script);
  const on = reader.given(SWITCHES, toBoolean);
  const rank = reader.given(RANKS, toInteger(1));
  const adapter = on ? on.value : rank !== undefined;
  if (adapter) {
    const method: Method = quantization ? 'qlora' : 'lora';
    const origin = (quantization ?? on ?? rank)!.origin;
    return {
      spec: {
        method: { value: method, origin },
        lora: readLora(reader, rank),
        ...(quantization ? { quantization } : {}),
      },
      diagnostics: [],
    };
  }
  if (!on && (script.mentions('peft') || script.mentions('LoraConfig'))) {
    const origin: Origin = { kind: 'derived', from: script.path ?? 'the script' };
    return {
      spec: { method: { value: null, origin } },
      diagnostics: [
        warning('unknown-method', 'the script works with peft, and no flag says whether this run trains an adapter', {
          location: script.path ?? 'the script',
          help: 'say it in a snug.yaml with method: and lora: beside the command',
        }),
      ],
    };
  }
  return {
    spec: { method: { value: 'full', origin: on?.origin ?? DEFAULT }, ...(quantization ? { quantization } : {}) },
    diagnostics: [],
  };
}

/** What a flag does not size is the script's own default, which is not known here; the usual ones stand in where harmless. */
function readLora(reader: SettingReader, rank: { value: number; origin: Origin } | undefined): Setting<Lora> {
  if (!rank) return { value: null, origin: { kind: 'derived', from: "the script's own default" } };
  const targets = reader.given(TARGETS, toWords);
  const saved = reader.given(SAVED, toWords);
  const value: Lora = {
    r: rank.value,
    loraAlpha: reader.given(ALPHAS, toNumber)?.value ?? rank.value,
    loraDropout: reader.given(DROPOUTS, toNumber)?.value ?? 0,
    targetModules: targets ? targetModules(targets.value) : 'default',
    // PEFT casts adapters of a 16-bit model up: `autocast_adapter_dtype` is true unless a script says otherwise.
    adapterDtype: 'fp32',
    modulesToSave: saved ? splitWords(saved.value) : [],
  };
  return { value, origin: rank.origin };
}

/** `q_proj v_proj`, `q_proj,v_proj` and `all-linear` are all in use. */
const splitWords = (words: readonly string[]): readonly string[] =>
  words.flatMap((word) => word.split(/[\s,]+/)).filter((word) => word !== '');

export function targetModules(words: readonly string[]): Lora['targetModules'] {
  const names = splitWords(words);
  return names.length === 1 && names[0] === 'all-linear' ? 'all-linear' : names;
}

/** A script that does not say it computes in bf16, as all examples do. */
function computeDtype(reader: SettingReader): FloatDType {
  const given = reader.given(['bnb_4bit_compute_dtype'], toFloatDType)?.value;
  return given === undefined || given === 'auto' ? 'bf16' : given;
}

function readQuantization(reader: SettingReader, script: ScriptFacts): Setting<Quantization> | undefined {
  const four = reader.given(FOUR_BIT, toBoolean);
  const eight = reader.given(EIGHT_BIT, toBoolean);
  const bits = four?.value ? 4 : eight?.value ? 8 : undefined;
  if (!bits) return undefined;
  const value: Quantization = {
    bits,
    quantType: bits === 8 ? 'int8' : (reader.given(['bnb_4bit_quant_type'], toOneOf('nf4', 'fp4'))?.value ?? 'nf4'),
    doubleQuant: bits === 4 && (reader.given(NESTED, toBoolean)?.value ?? false),
    computeDtype: computeDtype(reader),
    upcastRestToFp32: script.mentions('prepare_model_for_kbit_training'),
  };
  return { value, origin: (bits === 4 ? four : eight)!.origin };
}
