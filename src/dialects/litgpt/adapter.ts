import { type Diagnostic, error, type FloatDType, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type Lora,
  type Origin,
  type Quantization,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import { orNull, toBoolean, toInteger, toNumber, toOneOf } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { LITGPT, type Task } from './keys.ts';

/** Projections in litgpt's words, by what transformers calls them in one kind of model. */
export type Places = Readonly<Record<(typeof SWITCHES)[number], readonly string[]>>;

/** Switches of `litgpt finetune_lora` and what they are when nothing is said. */
export const SWITCHES = ['lora_query', 'lora_key', 'lora_value', 'lora_projection', 'lora_mlp', 'lora_head'] as const;
export const SWITCH_DEFAULTS: Readonly<Record<(typeof SWITCHES)[number], boolean>> = {
  lora_query: true,
  lora_key: false,
  lora_value: true,
  lora_projection: false,
  lora_mlp: false,
  lora_head: false,
};

const places = (
  [query, key, value]: readonly [string, string, string],
  projection: string,
  mlp: readonly string[],
  head = 'lm_head',
): Places => ({
  lora_query: [query],
  lora_key: [key],
  lora_value: [value],
  lora_projection: [projection],
  lora_mlp: mlp,
  lora_head: [head],
});

const one = (name: string): readonly [string, string, string] => [name, name, name];
const THREE: readonly [string, string, string] = ['q_proj', 'k_proj', 'v_proj'];
const NEOX = places(one('query_key_value'), 'dense', ['dense_h_to_4h', 'dense_4h_to_h'], 'embed_out');

/** Layers of transformers' classes by the model's name; litgpt has one projection for all three, and splits its LoRA. */
const KINDS: readonly (readonly [RegExp, Places])[] = [
  [/pythia|stablelm-(?:base|tuned)-alpha|redpajama|dolly|gpt-neox/i, NEOX],
  [/falcon-(?:7b|40b|180b)/i, places(one('query_key_value'), 'dense', ['dense_h_to_4h', 'dense_4h_to_h'])],
  [/phi-(?:1_5|2)\b/i, places(THREE, 'dense', ['fc1', 'fc2'])],
  [/phi-(?:3|4)/i, places(one('qkv_proj'), 'o_proj', ['gate_up_proj', 'down_proj'])],
];
const LLAMA = places(THREE, 'o_proj', ['gate_proj', 'up_proj', 'down_proj']);

export const placesOf = (model: string): Places => KINDS.find(([pattern]) => pattern.test(model))?.[1] ?? LLAMA;

/** Names for a set of switches; all but the head is `all-linear`. */
export function targetsOf(on: (name: (typeof SWITCHES)[number]) => boolean, names: Places): Lora['targetModules'] {
  const all = SWITCHES.every((name) => on(name) === (name !== 'lora_head'));
  return all ? 'all-linear' : [...new Set(SWITCHES.flatMap((name) => (on(name) ? names[name] : [])))];
}

const QUANTIZATIONS = ['bnb.nf4', 'bnb.nf4-dq', 'bnb.fp4', 'bnb.fp4-dq', 'bnb.int8-training'] as const;

export interface AdapterReading {
  readonly spec: TrainingSpec;
  readonly quantized: Origin | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** Adapters have the dtype of the weights; a quantised base keeps all else in it, and its head is quantised, too. */
export function readAdapter(
  reader: SettingReader,
  task: Task,
  model: string,
  dtype: FloatDType,
  mixed: boolean,
  devices: number | null,
): AdapterReading {
  reader.note('lora_r', 'lora_alpha', 'lora_dropout', ...SWITCHES);
  const method = { full: 'full', pretrain: 'full', lora: 'lora', adapter: null, adapter_v2: null } as const;
  if (task !== 'lora') {
    const value = method[task];
    return {
      spec: { method: { value, origin: { kind: 'derived', from: `litgpt ${task}` } } },
      quantized: undefined,
      diagnostics:
        value === null
          ? [warning('not-estimated', 'LLaMA-Adapter trains prompts of its own in each layer, which are not estimated')]
          : [],
    };
  }
  const given = reader.given([`quantize`], orNull(toOneOf(...QUANTIZATIONS)));
  const lora = readLora(reader, model, dtype);
  if (!given?.value) {
    return {
      spec: { method: { value: 'lora', origin: { kind: 'derived', from: 'litgpt finetune_lora' } }, lora },
      quantized: undefined,
      diagnostics: [],
    };
  }
  const { origin } = given;
  const location = formatOrigin(origin);
  const name = given.value;
  const four = name !== 'bnb.int8-training';
  const value: Quantization = {
    bits: four ? 4 : 8,
    quantType: four ? (name.startsWith('bnb.fp4') ? 'fp4' : 'nf4') : 'int8',
    doubleQuant: name.endsWith('-dq'),
    computeDtype: dtype,
    upcastRestToFp32: false,
  };
  const diagnostics: Diagnostic[] = [];
  if (mixed) {
    diagnostics.push(
      error('bad-value', 'litgpt quantises only with a precision that is not mixed', {
        location,
        help: 'write precision: bf16-true beside quantize',
      }),
    );
  }
  if (devices !== null && devices > 1) {
    diagnostics.push(
      error('bad-value', 'litgpt quantises only on one device', {
        location,
        help: 'set devices: 1, or take quantize out',
      }),
    );
  }
  return {
    // What its users call QLoRA has 4 bits.
    spec: { method: { value: four ? 'qlora' : 'lora', origin }, quantization: { value, origin }, lora },
    quantized: origin,
    diagnostics,
  };
}

function readLora(reader: SettingReader, model: string, dtype: FloatDType): Setting<Lora> {
  const r = reader.setting<number>(['lora_r'], toInteger(1), { value: 8, origin: LITGPT });
  const alpha = reader.setting<number>(['lora_alpha'], toNumber, { value: 16, origin: LITGPT });
  const dropout = reader.setting<number>(['lora_dropout'], toNumber, { value: 0.05, origin: LITGPT });
  const flags = new Map(
    SWITCHES.map((name) => [
      name,
      reader.setting<boolean>([name], toBoolean, { value: SWITCH_DEFAULTS[name], origin: LITGPT }).value,
    ]),
  );
  if (r.value === null || alpha.value === null || dropout.value === null) return { value: null, origin: r.origin };
  const value: Lora = {
    r: r.value,
    loraAlpha: alpha.value,
    loraDropout: dropout.value,
    targetModules: targetsOf((name) => flags.get(name) === true, placesOf(model)),
    adapterDtype: dtype,
    modulesToSave: [],
  };
  return { value, origin: r.origin };
}
