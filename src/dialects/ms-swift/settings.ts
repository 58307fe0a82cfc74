import { type Diagnostic, warning } from '../../core/index.ts';
import {
  type AttnImplementation,
  formatOrigin,
  type MixedPrecision,
  type Objective,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import { orNull, toBoolean, toInteger, toNumber, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import type { SwiftStart } from './detect.ts';
import type { SwiftVersion } from './versions.ts';

/** Without a word 16 rows make a step, rounded up. Source: trainers/arguments.py. */
export function readAccumulation(
  reader: SettingReader,
  micro: number | null,
  ranks: number,
  { origin }: SwiftVersion,
): Setting<number> {
  const given = reader.given(['gradient_accumulation_steps'], orNull(toInteger(1)));
  if (given?.value) return { value: given.value, origin: given.origin };
  return { value: micro === null ? null : Math.max(1, Math.ceil(16 / micro / ranks)), origin };
}

/** Autocast follows what weights are loaded in: bf16 for bf16, fp16 for fp16 and fp32. */
export function readPrecision(
  reader: SettingReader,
  loaded: Setting<unknown>,
  { origin }: SwiftVersion,
): Setting<MixedPrecision> {
  const fp16 = reader.given(['fp16'], orNull(toBoolean));
  const bf16 = reader.given(['bf16'], orNull(toBoolean));
  if (fp16?.value) return { value: 'fp16', origin: fp16.origin };
  if (bf16?.value) return { value: 'bf16', origin: bf16.origin };
  const derived: MixedPrecision = loaded.value === 'fp16' || loaded.value === 'fp32' ? 'fp16' : 'bf16';
  const off = derived === 'bf16' ? bf16 : fp16;
  if (off && off.value === false) return { value: 'no', origin: off.origin };
  return { value: derived, origin: loaded.value === null ? origin : loaded.origin };
}

const OBJECTIVES: Readonly<Record<string, Objective | null>> = {
  dpo: 'dpo',
  orpo: 'orpo',
  simpo: 'orpo',
  cpo: 'orpo',
  kto: 'kto',
  rm: 'reward',
  grpo: 'grpo',
  ppo: null,
  gkd: null,
};

/** What is trained for: the command says it, `rlhf` by `rlhf_type`; null where nobody here counts what it holds. */
export function readObjective(
  reader: SettingReader,
  { command }: SwiftStart,
  { origin }: SwiftVersion,
): { readonly setting: Setting<Objective>; readonly diagnostics: readonly Diagnostic[] } {
  const from = { kind: 'derived', from: `swift ${command}` } as const;
  if (command !== 'rlhf') {
    const task = reader.given(['task_type'], orNull(toText));
    if (task?.value === 'seq_cls')
      return { setting: { value: 'classification', origin: task.origin }, diagnostics: [] };
    return { setting: { value: command === 'pt' ? 'clm' : 'sft', origin: from }, diagnostics: [] };
  }
  reader.note(
    'beta',
    'num_generations',
    'max_completion_length',
    'use_vllm',
    'vllm_mode',
    'vllm_gpu_memory_utilization',
    'ref_model',
  );
  const type = reader.setting<string>(['rlhf_type'], toText, { value: 'dpo', origin });
  const objective = OBJECTIVES[type.value ?? ''] ?? null;
  const unsure = objective === null || objective === 'grpo';
  return {
    setting: { value: objective, origin: type.origin },
    diagnostics: unsure
      ? [
          warning(
            'not-estimated',
            `rlhf_type ${type.value} generates or holds other models, which the estimate leaves out`,
            { location: formatOrigin(type.origin) },
          ),
        ]
      : [],
  };
}

/** Evaluation runs as often as saving where there is something to evaluate. */
export function readEval(reader: SettingReader, read: Setting<boolean>, version: SwiftVersion): Setting<boolean> {
  const ratio = reader.setting<number>(['split_dataset_ratio', 'dataset_test_ratio'], toNumber, {
    value: version.splitDatasetRatio,
    origin: version.origin,
  });
  const data = reader.values.find('val_dataset', 'eval_dataset');
  reader.note('val_dataset', 'eval_dataset');
  const has = (data !== undefined && JSON.stringify(data.raw) !== '[]') || (ratio.value ?? 0) > 0;
  const strategy = reader.values.find('eval_strategy', 'evaluation_strategy') ?? reader.values.find('save_strategy');
  if (!has) return { value: false, origin: data?.origin ?? ratio.origin };
  return {
    value: String(strategy?.raw ?? 'steps') !== 'no',
    origin: strategy?.origin ?? data?.origin ?? ratio.origin ?? read.origin,
  };
}

/** Packed rows, and rows flattened to one, go without a mask; without `max_length` the model's own limit holds. */
export function readRows(reader: SettingReader, version: SwiftVersion, objective: Objective | null): TrainingSpec {
  const { origin } = version;
  reader.note('truncation_strategy', 'packing_num_proc', 'packing_strategy', 'max_model_len');
  const toLength = orNull((raw: FileValue) =>
    String(raw) === '-1' ? { ok: true as const, value: 0 } : toInteger(1)(raw),
  );
  const length = reader.setting<number | null>(['max_length'], toLength, {
    value: version.maxLength,
    origin:
      version.maxLength === null
        ? { kind: 'derived', from: "max_length, which is not set: the model's own limit" }
        : origin,
  });
  const packed = reader.setting<number | null>(['packing_length'], orNull(toInteger(1)), { value: null, origin });
  const packing = reader.setting<boolean>(['packing'], toBoolean, { value: false, origin });
  const free = reader.setting<boolean>(['padding_free'], toBoolean, { value: false, origin });
  const flat = packing.value === true || free.value === true;
  const completion =
    objective === 'grpo'
      ? reader.setting<number>(['max_completion_length'], toInteger(1), { value: 512, origin })
      : undefined;
  const rows = packing.value && packed.value ? packed : length;
  return {
    maxLength: completion ?? ({ value: rows.value === 0 ? null : rows.value, origin: rows.origin } as Setting<number>),
    packing,
    paddingFree: { value: flat, origin: packing.value ? packing.origin : free.origin },
    attentionMask: { value: !flat, origin: flat ? (packing.value ? packing.origin : free.origin) : origin },
  };
}

const ATTENTIONS: Readonly<Record<string, AttnImplementation>> = {
  eager: 'eager',
  sdpa: 'sdpa',
  flash_attn: 'flash_attention_2',
  flash_attention_2: 'flash_attention_2',
  flash_attention_3: 'flash_attention_3',
  flash_attention_4: 'flash_attention_3',
  flex_attention: 'flex_attention',
};

/** The older switch counts where the newer key says nothing. */
export function readAttention(reader: SettingReader, { origin }: SwiftVersion): Setting<AttnImplementation> {
  const older = reader.given(['use_flash_attn'], orNull(toBoolean));
  const given = reader.given(['attn_impl'], orNull(toText));
  if (given?.value) return { value: ATTENTIONS[given.value] ?? null, origin: given.origin };
  if (older?.value) return { value: 'flash_attention_2', origin: older.origin };
  return { value: 'sdpa', origin: older?.origin ?? origin };
}
