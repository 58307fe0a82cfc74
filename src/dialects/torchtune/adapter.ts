import { type Diagnostic, type FloatDType, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type Lora,
  type Method,
  type Origin,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { Reading } from '../dialect.ts';
import { orNull, toBoolean, toInteger, toNumber, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { TORCHTUNE } from './keys.ts';
import { type Builder, fusesProjections } from './models.ts';
import type { Recipe } from './recipes.ts';

/** Attention projections as torchtune names them, by transformers' name. */
const ATTENTION: Readonly<Record<string, string>> = {
  q_proj: 'q_proj',
  k_proj: 'k_proj',
  v_proj: 'v_proj',
  output_proj: 'o_proj',
};
const MLP = ['gate_proj', 'up_proj', 'down_proj'];

/** What LoRA is asked for, in torchtune's words. */
export interface LoraPlaces {
  readonly attention: readonly string[];
  readonly mlp: boolean;
  readonly head: boolean;
}

/** The same in transformers' names; every linear layer but the head is `all-linear`. */
export function targetsOf({ attention, mlp, head }: LoraPlaces, fused: boolean): Lora['targetModules'] {
  const all = Object.keys(ATTENTION).every((name) => attention.includes(name));
  if (all && mlp && !head) return 'all-linear';
  const wide = attention.flatMap((name) => ATTENTION[name] ?? []);
  const names = fused ? wide.map((name) => (name === 'o_proj' ? name : 'qkv_proj')) : wide;
  const feedForward = !mlp ? [] : fused ? ['gate_up_proj', 'down_proj'] : MLP;
  return [...new Set([...names, ...feedForward, ...(head ? ['lm_head'] : [])])];
}

/** The way back; undefined: torchtune cannot put LoRA in just these places. */
export function placesOf(targets: Lora['targetModules'], fused: boolean): LoraPlaces | undefined {
  if (targets === 'default') return undefined;
  const every = Object.keys(ATTENTION);
  if (targets === 'all-linear') return { attention: every, mlp: true, head: false };
  for (const mlp of [false, true]) {
    for (const head of [false, true]) {
      const attention = every.filter(
        (name) =>
          targets.includes(ATTENTION[name]!) || (fused && targets.includes('qkv_proj') && name !== 'output_proj'),
      );
      const made = targetsOf({ attention, mlp, head }, fused);
      const same =
        typeof made !== 'string' && made.length === targets.length && made.every((name) => targets.includes(name));
      if (same && attention.length > 0) return { attention, mlp, head };
    }
  }
  return undefined;
}

export interface AdapterReading extends Pick<Reading, 'parts'> {
  readonly spec: TrainingSpec;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The builder says whether there are adapters and whether the base is quantised; adapters have the dtype of the run. The
 * base becomes torchao's NF4, whose scales are quantised again. Source: torchtune/models/llama3/_component_builders.py.
 */
export function readAdapter(
  reader: SettingReader,
  builder: Builder | undefined,
  component: Origin,
  dtype: FloatDType,
  recipe: Recipe,
): AdapterReading {
  reader.note('model.lora_rank', 'model.lora_alpha', 'model.lora_dropout', 'model.lora_attn_modules');
  reader.note('model.apply_lora_to_mlp', 'model.apply_lora_to_output', 'model.use_dora', 'model.quantize_base');
  if (!builder) return unbuilt(reader, component, recipe);
  const location = formatOrigin(component);
  if (builder.adapter === 'none') {
    const wants = recipe.lora === true;
    return {
      spec: { method: { value: 'full', origin: component } },
      diagnostics: wants
        ? [
            warning('conflict', `${recipe.name} trains adapters, and the model is built without any`, {
              location,
              help: `build it with ${builder.module}lora_${builder.base}`,
            }),
          ]
        : [],
    };
  }
  const on = (key: string) => {
    const given = reader.given([key], orNull(toBoolean));
    return given?.value === true ? given : undefined;
  };
  const base = on('model.quantize_base');
  const quantized = builder.adapter === 'qlora' ? component : base?.origin;
  const dora = on('model.use_dora');
  const method: Setting<Method> = quantized
    ? { value: 'qlora', origin: quantized }
    : dora
      ? { value: 'dora', origin: dora.origin }
      : { value: 'lora', origin: component };
  return {
    spec: {
      method,
      lora: readLora(reader, builder, component, dtype),
      ...(quantized
        ? {
            quantization: {
              value: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: dtype, upcastRestToFp32: false },
              origin: quantized,
            },
          }
        : {}),
    },
    diagnostics:
      recipe.lora === false
        ? [
            warning('conflict', `${recipe.name} trains all weights, and the model is built with adapters`, {
              location,
              help: `build it with ${builder.module}${builder.base}, or take a lora_ recipe`,
            }),
          ]
        : [],
  };
}

/** Without a builder that is known, the recipe's name still says whether it trains adapters. */
function unbuilt(reader: SettingReader, component: Origin, recipe: Recipe): AdapterReading {
  if (component.kind !== 'default' || recipe.lora !== true) {
    return { spec: { method: { value: null, origin: component } }, diagnostics: [] };
  }
  const origin: Origin = { kind: 'derived', from: `recipe ${recipe.name}` };
  const r = reader.given(['model.lora_rank'], toInteger(1));
  return {
    spec: {
      method: { value: 'lora', origin },
      lora: { value: null, origin: r?.origin ?? origin },
      quantization: { value: null, origin },
    },
    ...(r ? { parts: { lora: { r: r.value } } } : {}),
    diagnostics: [],
  };
}

function readLora(reader: SettingReader, builder: Builder, component: Origin, dtype: FloatDType): Setting<Lora> {
  const otherwise = <T>(value: T) => ({ value, origin: TORCHTUNE });
  const r = reader.setting<number>(['model.lora_rank'], toInteger(1), otherwise(8));
  const alpha = reader.setting<number>(['model.lora_alpha'], toNumber, otherwise(16));
  const dropout = reader.setting<number>(['model.lora_dropout'], toNumber, otherwise(0));
  const attention = reader.given(['model.lora_attn_modules'], toWords);
  const flag = (key: string): boolean => reader.given([key], orNull(toBoolean))?.value === true;
  if (r.value === null || alpha.value === null || dropout.value === null || !attention) {
    return { value: null, origin: attention ? r.origin : component };
  }
  const places: LoraPlaces = {
    attention: attention.value,
    mlp: flag('model.apply_lora_to_mlp'),
    head: flag('model.apply_lora_to_output'),
  };
  const value: Lora = {
    r: r.value,
    loraAlpha: alpha.value,
    loraDropout: dropout.value,
    targetModules: targetsOf(places, fusesProjections(builder)),
    adapterDtype: dtype,
    modulesToSave: [],
  };
  return { value, origin: r.origin };
}
