import { type Diagnostic, error, type FloatDType } from '../../core/index.ts';
import {
  formatOrigin,
  type Lora,
  type Method,
  type Quantization,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { Unread } from '../contract.ts';
import { orNull, toBoolean, toFloatDType, toInteger, toNumber, toOneOf, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { scriptDtype } from '../hf-trainer/read.ts';
import type { ScriptFacts } from '../hf-trainer/script.ts';
import { readTargets } from './target-modules.ts';
import type { TrlVersion } from './versions.ts';

const LORA_KEYS = [
  'lora_r',
  'lora_alpha',
  'lora_dropout',
  'lora_target_modules',
  'lora_target_parameters',
  'lora_modules_to_save',
  'lora_task_type',
  'use_rslora',
  'use_dora',
];

export interface PeftReading {
  readonly spec: TrainingSpec;
  readonly unread: readonly Unread[];
  readonly diagnostics: readonly Diagnostic[];
}

/** `use_peft` alone decides about LoRA. Source: trl/trainer/utils.py `get_peft_config`, `get_quantization_config`. */
export function readPeft(
  reader: SettingReader,
  version: TrlVersion,
  shardsWithZero3: boolean,
  script: ScriptFacts | undefined,
): PeftReading {
  const { origin } = version;
  const dtype = reader.setting(['dtype', 'torch_dtype'], orNull(toFloatDType), unsaidDtype(version, script));
  const load: Setting<FloatDType | 'auto'> =
    dtype.value === null ? { ...dtype, value: 'auto' } : (dtype as Setting<FloatDType>);
  const quantization = readQuantization(reader, version, load, script);
  const peft = reader.setting(['use_peft'], toBoolean, { value: false, origin });
  const common: TrainingSpec = { dtype: load, ...(quantization ? { quantization } : {}) };
  reader.note(...LORA_KEYS, 'bnb_4bit_quant_storage');
  if (quantization && peft.value !== true && script) return quantizedScript(common, quantization);
  if (peft.value !== true) {
    const ignored = LORA_KEYS.flatMap((key) => reader.values.find(key) ?? []);
    return {
      spec: { ...common, method: { value: peft.value === null ? null : 'full', origin: peft.origin } },
      unread: ignored.map((found) => ({
        key: found.key,
        origin: found.origin,
        reason: 'has no effect without use_peft',
      })),
      diagnostics: quantization ? [quantizedWithoutPeft(quantization)] : [],
    };
  }
  const dora = reader.given(['use_dora'], toBoolean)?.value === true;
  const method: Method = quantization ? 'qlora' : dora ? 'dora' : 'lora';
  const adapterDtype = quantization
    ? version.quantizedAdapterDtype
    : // PEFT's cast of adapters to fp32 is off under ZeRO-3, which cannot hold two dtypes (sft_trainer.py).
      shardsWithZero3 && load.value !== 'auto'
      ? (load.value as FloatDType)
      : 'fp32';
  const methodOrigin = quantization ? quantization.origin : peft.origin;
  return {
    spec: { ...common, method: { value: method, origin: methodOrigin }, lora: readLora(reader, version, adapterDtype) },
    unread: [],
    diagnostics: [],
  };
}

/** A script that loads the model itself leaves the dtype to it; TRL's own loading takes fp32. */
function unsaidDtype(
  { dtype, origin, transformers }: TrlVersion,
  script: ScriptFacts | undefined,
): Setting<FloatDType | 'auto'> {
  const own = script && scriptDtype(script, transformers);
  return own && (own.origin.kind === 'file' || script.mentions('from_pretrained')) ? own : { value: dtype, origin };
}

/** A quantised model trains only through an adapter, so a script that quantises brings one of its own. */
function quantizedScript(common: TrainingSpec, { origin }: Setting<Quantization>): PeftReading {
  const unknown: Setting<Lora> = { value: null, origin: { kind: 'derived', from: 'the script' } };
  return { spec: { ...common, method: { value: 'qlora', origin }, lora: unknown }, unread: [], diagnostics: [] };
}

function quantizedWithoutPeft(quantization: Setting<Quantization>): Diagnostic {
  return error('quantized-full', 'a quantised model cannot be trained without an adapter', {
    location: formatOrigin(quantization.origin),
    help: 'add use_peft: true, or take the quantization out',
  });
}

function readLora(reader: SettingReader, { origin }: TrlVersion, adapterDtype: FloatDType): Setting<Lora> {
  const r = reader.setting(['lora_r'], toInteger(1), { value: 16, origin });
  const alpha = reader.setting(['lora_alpha'], toNumber, { value: 32, origin });
  const dropout = reader.setting(['lora_dropout'], toNumber, { value: 0.05, origin });
  const targets = reader.given(['lora_target_modules'], orNull(toWords))?.value;
  const saved = reader.given(['lora_modules_to_save'], orNull(toWords))?.value;
  if (r.value === null || alpha.value === null || dropout.value === null) return { value: null, origin: r.origin };
  const value: Lora = {
    r: r.value,
    loraAlpha: alpha.value,
    loraDropout: dropout.value,
    targetModules: targets && targets.length > 0 ? readTargets(targets) : 'default',
    adapterDtype,
    modulesToSave: saved ?? [],
  };
  return { value, origin: r.origin };
}

/** The compute dtype is the load dtype: QLoRA without `dtype: bfloat16` computes in fp32. */
function readQuantization(
  reader: SettingReader,
  version: TrlVersion,
  dtype: Setting<FloatDType | 'auto'>,
  script: ScriptFacts | undefined,
): Setting<Quantization> | undefined {
  const four = reader.given(['load_in_4bit'], toBoolean);
  const eight = reader.given(['load_in_8bit'], toBoolean);
  const type = reader.given(['bnb_4bit_quant_type'], toOneOf('nf4', 'fp4'));
  const nested = reader.given(['use_bnb_nested_quant'], toBoolean);
  const compute = reader.given(['bnb_4bit_compute_dtype'], toFloatDType)?.value ?? dtype.value;
  const bits = four?.value ? 4 : eight?.value ? 8 : undefined;
  if (!bits) return undefined;
  const value: Quantization = {
    bits,
    quantType: bits === 8 ? 'int8' : (type?.value ?? 'nf4'),
    doubleQuant: bits === 4 && (nested?.value ?? false),
    computeDtype: compute === null || compute === 'auto' ? 'fp32' : compute,
    upcastRestToFp32: version.kbitPreparation || script?.mentions('prepare_model_for_kbit_training') === true,
  };
  return { value, origin: (bits === 4 ? four : eight)!.origin };
}
