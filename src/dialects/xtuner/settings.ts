import { type Diagnostic, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type Lora,
  type Origin,
  type Quantization,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import {
  type Convert,
  orNull,
  toBoolean,
  toFloatDType,
  toInteger,
  toNumber,
  toText,
  toWords,
} from '../hf-argparser/convert.ts';
import type { ConfigValue, XtunerConfig } from './config.ts';

/** Source: xtuner/model/sft.py, xtuner/tools/train.py, xtuner/configs of 0.2.0. */
export const XTUNER: Origin = { kind: 'default', tool: 'xtuner', version: '0.2' };

/** Variables of a config that a setting is read from. */
export const READ = new Set(
  `pretrained_model_name_or_path max_length pack_to_max_length batch_size accumulative_counts dataloader_num_workers
  optim_type max_norm save_total_limit use_varlen_attn sequence_parallel_size model train_dataloader optim_wrapper`
    .trim()
    .split(/\s+/),
);

interface ConfigSettings {
  readonly spec: TrainingSpec;
  readonly diagnostics: readonly Diagnostic[];
}

type Dict = ReadonlyMap<string, ConfigValue> | undefined;

/** Settings that a config assigns as literals; an expression leaves them unknown. */
export function settingsOfConfig(config: XtunerConfig): ConfigSettings {
  const variable = <T>(name: string, convert: Convert<T>, otherwise: T | null): Setting<T> =>
    converted(config.variable(name), convert, otherwise);
  const llm = config.dictOf('from_pretrained') ?? config.dictOf('AutoModelForCausalLM.from_pretrained');
  const trainer = config.dictOf('SupervisedFinetune') ?? config.dictOf('DPO') ?? config.dictOf('RewardModel');
  const wrapper = config.dictOf('AmpOptimWrapper');
  const lora = config.dictOf('LoraConfig');
  const quantized = quantizationOf(config.dictOf('BitsAndBytesConfig'));
  const name = variable('pretrained_model_name_or_path', toText, null);
  const packing = variable('pack_to_max_length', toBoolean, false);
  const recompute = converted(trainer?.get('use_activation_checkpointing'), toBoolean, true);
  const loaded = converted(llm?.get('torch_dtype'), toFloatDType, 'bf16');
  const micro = variable('batch_size', toInteger(1), null);
  const sharded = config.variable('sequence_parallel_size');
  return {
    spec: {
      ...(name.value === null ? {} : { modelNameOrPath: name as Setting<string> }),
      objective: config.mentions('DPO')
        ? { value: 'dpo', origin: XTUNER }
        : config.mentions('RewardModel')
          ? { value: 'reward', origin: XTUNER }
          : { value: 'sft', origin: XTUNER },
      ...methodOf(lora, quantized),
      // Preparation for k-bit training casts whatever is not quantised up, and LoRA always goes through it.
      dtype: lora && !quantized ? { value: 'fp32', origin: XTUNER } : loaded,
      mixedPrecision: precisionOf(wrapper),
      perDeviceTrainBatchSize: micro,
      perDeviceEvalBatchSize: { value: micro.value, origin: micro.origin },
      eval: { value: false, origin: XTUNER },
      gradientAccumulationSteps: variable('accumulative_counts', toInteger(1), 1),
      maxLength: variable('max_length', toInteger(1), null),
      packing,
      attnImplementation: attentionOf(llm),
      gradientCheckpointing: {
        value:
          recompute.value === null
            ? null
            : { enabled: recompute.value, useReentrant: true, everyNLayers: 1, offload: false },
        origin: recompute.origin,
      },
      optim: optimizerOf(config.variable('optim_type'), config),
      maxGradNorm: variable('max_norm', toNumber, 1),
      lossImpl: { value: 'full', origin: XTUNER },
      dataloaderNumWorkers: variable('dataloader_num_workers', toInteger(0), 0),
      saveTotalLimit: variable<number | null>('save_total_limit', orNull(toInteger(-1)), null),
    },
    diagnostics:
      sharded && sharded.value !== 1
        ? [
            warning('not-estimated', 'sequence parallelism splits every row over several GPUs, which is left out', {
              location: formatOrigin(sharded.origin),
            }),
          ]
        : [],
  };
}

/** A config by its name alone: only the method, which the names carry. */
export function settingsOfName(name: string, origin: Origin): ConfigSettings {
  const method = /(?:^|_)(qlora|lora|full)(?:_|$)/.exec(name)?.[1] as 'qlora' | 'lora' | 'full' | undefined;
  const unknown = { value: null, origin };
  return {
    spec: {
      objective: { value: 'sft', origin: XTUNER },
      method: { value: method ?? null, origin },
      perDeviceTrainBatchSize: unknown,
      gradientAccumulationSteps: unknown,
      maxLength: unknown,
      mixedPrecision: unknown,
      optim: unknown,
      gradientCheckpointing: {
        value: { enabled: true, useReentrant: true, everyNLayers: 1, offload: false },
        origin: XTUNER,
      },
    },
    diagnostics: [],
  };
}

function converted<T>(found: ConfigValue | undefined, convert: Convert<T>, otherwise: T | null): Setting<T> {
  if (!found) return { value: otherwise, origin: XTUNER };
  const read = found.value === undefined ? undefined : convert(found.value);
  return { value: read?.ok ? read.value : null, origin: found.origin };
}

const literal = (dict: Dict, key: string): FileValue | undefined => dict?.get(key)?.value;

function methodOf(lora: Dict, quantization: Setting<Quantization> | undefined): TrainingSpec {
  if (!lora) return { method: { value: 'full', origin: XTUNER } };
  const origin = lora.get('type')?.origin ?? XTUNER;
  const targets = lora.get('target_modules');
  const words = targets && targets.value !== null ? converted(targets, toWords, null).value : null;
  const value: Lora = {
    r: Number(literal(lora, 'r') ?? 8),
    loraAlpha: Number(literal(lora, 'lora_alpha') ?? 8),
    loraDropout: Number(literal(lora, 'lora_dropout') ?? 0),
    // Without targets XTuner looks for every linear layer itself.
    targetModules: words ?? 'all-linear',
    adapterDtype: 'fp32',
    modulesToSave: [],
  };
  return {
    method: { value: quantization ? 'qlora' : 'lora', origin: quantization?.origin ?? origin },
    lora: { value, origin },
    ...(quantization ? { quantization } : {}),
  };
}

function quantizationOf(dict: Dict): Setting<Quantization> | undefined {
  const eight = literal(dict, 'load_in_8bit') === true;
  if (!dict || !(eight || literal(dict, 'load_in_4bit') === true)) return undefined;
  const compute = toFloatDType(literal(dict, 'bnb_4bit_compute_dtype') ?? 'float32');
  return {
    value: {
      bits: eight ? 8 : 4,
      quantType: eight ? 'int8' : literal(dict, 'bnb_4bit_quant_type') === 'nf4' ? 'nf4' : 'fp4',
      doubleQuant: !eight && literal(dict, 'bnb_4bit_use_double_quant') === true,
      computeDtype: compute.ok && compute.value !== 'auto' ? compute.value : 'fp32',
      upcastRestToFp32: true,
    },
    origin: dict.get('type')?.origin ?? XTUNER,
  };
}

/** mmengine's AmpOptimWrapper without a dtype is fp16 autocast. */
function precisionOf(wrapper: Dict): NonNullable<TrainingSpec['mixedPrecision']> {
  if (!wrapper) return { value: 'no', origin: XTUNER };
  const dtype = wrapper.get('dtype');
  const origin = dtype?.origin ?? wrapper.get('type')?.origin ?? XTUNER;
  return { value: dtype?.value === 'bfloat16' ? 'bf16' : dtype && dtype.value === undefined ? null : 'fp16', origin };
}

/** Flash attention where it is installed, unless the model is told otherwise. */
function attentionOf(llm: Dict): NonNullable<TrainingSpec['attnImplementation']> {
  const given = llm?.get('attn_implementation');
  if (!given) return { value: 'flash_attention_2', origin: XTUNER };
  const known = (['eager', 'sdpa', 'flash_attention_2'] as const).find((name) => name === given.value);
  return { value: known ?? null, origin: given.origin };
}

/** A class, by the name it is imported under. */
function optimizerOf(type: ConfigValue | undefined, config: XtunerConfig): Setting<string> {
  if (!type) return { value: null, origin: XTUNER };
  const names = {
    PagedAdamW32bit: 'paged_adamw_32bit',
    PagedAdamW8bit: 'paged_adamw_8bit',
    AdamW8bit: 'adamw_bnb_8bit',
  };
  const other = Object.entries(names).find(([name]) => config.mentions(name));
  if (other) return { value: other[1], origin: type.origin };
  return { value: config.mentions('AdamW') ? 'adamw_torch' : null, origin: type.origin };
}
