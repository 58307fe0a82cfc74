import { type Diagnostic, warning } from '../../core/index.ts';
import {
  type AttnImplementation,
  formatOrigin,
  type GradientCheckpointing,
  type LossImpl,
  type Objective,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import {
  type Converted,
  orNull,
  toBoolean,
  toInteger,
  toNumber,
  toOneOf,
  toText,
  toWords,
} from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import type { LlamaFactoryVersion } from './versions.ts';

const STAGES = ['pt', 'sft', 'rm', 'ppo', 'dpo', 'kto'] as const;
export type Stage = (typeof STAGES)[number];

const OBJECTIVES: Readonly<Record<Stage, Objective | null>> = {
  pt: 'clm',
  sft: 'sft',
  rm: 'reward',
  ppo: null,
  dpo: 'dpo',
  kto: 'kto',
};

export const readStage = (reader: SettingReader, { origin }: LlamaFactoryVersion): Setting<Stage> =>
  reader.setting(['stage'], toOneOf(...STAGES), { value: 'sft', origin });

/** A preference loss without a reference model (`orpo`, `simpo`) holds what ORPO holds. */
export function readObjective(
  reader: SettingReader,
  stage: Setting<Stage>,
): { readonly setting: Setting<Objective>; readonly diagnostics: readonly Diagnostic[] } {
  reader.note('pref_ftx');
  const loss = reader.given(['pref_loss', 'dpo_loss'], toText);
  const { value, origin } = stage;
  if (value === 'dpo' && loss && (loss.value === 'orpo' || loss.value === 'simpo')) {
    return { setting: { value: 'orpo', origin: loss.origin }, diagnostics: [] };
  }
  const diagnostics =
    value === 'ppo'
      ? [
          warning('not-estimated', 'stage ppo holds a reward model and generates, which is not estimated', {
            location: formatOrigin(origin),
          }),
        ]
      : [];
  return { setting: { value: value === null ? null : OBJECTIVES[value], origin }, diagnostics };
}

/** Tokens a row. Packing takes one token off, and padding to a multiple of 8 brings it back. */
export function readLength(reader: SettingReader, { cutoffLen, origin }: LlamaFactoryVersion): Setting<number> {
  reader.note('max_source_length', 'max_target_length');
  const cutoff = reader.given(['cutoff_len'], toInteger(1));
  if (cutoff) return cutoff;
  const source = reader.given(['max_source_length'], toInteger(1));
  const target = reader.given(['max_target_length'], toInteger(1));
  if (source && target) return { value: source.value + target.value, origin: source.origin };
  return reader.setting(['cutoff_len'], toInteger(1), { value: cutoffLen, origin });
}

/** `neat_packing` implies packing; with flash attention it hands no mask on, else a square one. Source: data/collator.py. */
export function readPacking(
  reader: SettingReader,
  stage: Setting<Stage>,
  attention: Setting<AttnImplementation>,
  { origin }: LlamaFactoryVersion,
): TrainingSpec {
  const neat = reader.given(['neat_packing'], toBoolean);
  const asked = reader.given(['packing', 'sft_packing'], orNull(toBoolean));
  const packing: Setting<boolean> = neat?.value
    ? neat
    : asked && asked.value !== null
      ? { value: asked.value, origin: asked.origin }
      : stage.value === 'pt'
        ? { value: true, origin: stage.origin }
        : { value: false, origin };
  const dropsMask = neat?.value === true && attention.value === 'flash_attention_2';
  return { packing, attentionMask: { value: !dropsMask, origin: neat?.value ? neat.origin : origin } };
}

const ATTENTIONS: Readonly<Record<string, AttnImplementation>> = {
  auto: 'sdpa',
  disabled: 'eager',
  off: 'eager',
  sdpa: 'sdpa',
  fa2: 'flash_attention_2',
  fa3: 'flash_attention_3',
};

/** Older releases had a switch for flash attention under the same name. */
const toAttention = (raw: FileValue): Converted<AttnImplementation> => {
  const known = typeof raw === 'string' ? ATTENTIONS[raw.toLowerCase()] : undefined;
  if (known) return { ok: true, value: known };
  const flag = toBoolean(raw);
  if (flag.ok) return { ok: true, value: flag.value ? 'flash_attention_2' : 'sdpa' };
  return { ok: false, expected: 'auto, disabled, sdpa, fa2 or fa3' };
};

export const readAttention = (
  reader: SettingReader,
  { origin }: LlamaFactoryVersion,
): NonNullable<TrainingSpec['attnImplementation']> =>
  reader.setting(['flash_attn'], toAttention, { value: 'sdpa', origin });

/**
 * On unless it is disabled; the switch of TrainingArguments only adds to that. `use_unsloth_gc` moves what is kept of each
 * layer to host RAM. Source: model_utils/checkpointing.py `prepare_model_for_training`.
 */
export function readCheckpointing(
  reader: SettingReader,
  { origin }: LlamaFactoryVersion,
  fsdp2: boolean,
): Setting<GradientCheckpointing> {
  reader.note('gradient_checkpointing', 'gradient_checkpointing_kwargs');
  const disabled = reader.setting(['disable_gradient_checkpointing'], toBoolean, { value: false, origin });
  const reentrant = reader.setting(['use_reentrant_gc'], toBoolean, { value: true, origin });
  const unsloth = reader.setting(['use_unsloth_gc'], toBoolean, { value: false, origin });
  const trainer = reader.given(['gradient_checkpointing'], orNull(toBoolean));
  if (disabled.value === null) return { value: null, origin: disabled.origin };
  const again = disabled.value && trainer?.value === true;
  const enabled = !disabled.value || again;
  const value: GradientCheckpointing = {
    enabled,
    useReentrant: enabled && reentrant.value === true && !fsdp2,
    everyNLayers: 1,
    offload: unsloth.value === true,
  };
  const settled = [disabled, unsloth, reentrant].find((each) => each.origin.kind !== 'default') ?? disabled;
  return { value, origin: again ? trainer!.origin : settled.origin };
}

/** Liger's fused loss is left out where the trainer needs the logits. Source: model_utils/liger_kernel.py. */
export function readLoss(
  reader: SettingReader,
  stage: Setting<Stage>,
  read: Setting<LossImpl>,
  { origin }: LlamaFactoryVersion,
): Setting<LossImpl> {
  reader.note('upcast_lmhead_output');
  const liger = reader.given(['enable_liger_kernel'], toBoolean);
  const own = ['use_dft_loss', 'use_asft_loss', 'use_eaft_loss'].map((key) => reader.given([key], toBoolean));
  const needsLogits = (stage.value !== 'pt' && stage.value !== 'sft') || own.some((each) => each?.value);
  if (needsLogits) return { value: 'full', origin: stage.origin };
  if (liger?.value) return { value: 'fused', origin: liger.origin };
  return read.value === 'fused' ? read : { value: 'full', origin };
}

/** Evaluation needs both a strategy and something to evaluate. */
export function readEval(
  reader: SettingReader,
  read: Setting<boolean>,
  { origin }: LlamaFactoryVersion,
): Setting<boolean> {
  const size = reader.setting(['val_size'], toNumber, { value: 0, origin });
  const data = reader.given(
    ['eval_dataset'],
    orNull((raw) => ({ ok: true, value: raw })),
  );
  const has = (data !== undefined && data.value !== null) || size.value !== 0;
  return read.value && !has ? { value: false, origin: size.origin } : read;
}

/** Switches that put another optimizer in the place of `optim`, with transformers' names where there are some. */
const SWITCHES = ['use_galore', 'use_apollo', 'use_badam', 'use_adam_mini', 'use_muon'] as const;

export const optimizerSwitch = (reader: Pick<SettingReader, 'given'>): string | undefined =>
  SWITCHES.find((key) => reader.given([key], toBoolean)?.value === true);

/** Source: train/trainer_utils.py `create_custom_optimizer`. */
export function readOptimizer(
  reader: SettingReader,
  read: Setting<string>,
  version: LlamaFactoryVersion,
): {
  readonly setting: Setting<string>;
  /** Rank and layers of a projecting optimizer. */
  readonly spec: Pick<TrainingSpec, 'optimArgs' | 'optimTargetModules'>;
  readonly diagnostics: readonly Diagnostic[];
} {
  reader.note(...SWITCHES, 'galore_rank', 'galore_target', 'apollo_rank', 'apollo_target');
  const key = optimizerSwitch(reader);
  if (!key) return { setting: read, spec: {}, diagnostics: [] };
  const { origin } = reader.given([key], toBoolean)!;
  const kind = key === 'use_galore' ? 'galore' : key === 'use_apollo' ? 'apollo' : undefined;
  if (!kind) {
    const message = `${key} takes an optimizer that is not estimated`;
    return {
      setting: { value: null, origin },
      spec: {},
      diagnostics: [warning('not-estimated', message, { location: formatOrigin(origin) })],
    };
  }
  const layerwise = reader.given([`${kind}_layerwise`], toBoolean)?.value ? '_layerwise' : '';
  const states = kind === 'galore' && /8bit/.test(read.value ?? '') ? '_8bit' : '';
  const rank = reader.setting<number>([`${kind}_rank`], toInteger(1), { value: 16, origin: version.origin });
  const target = reader.setting<readonly string[]>([`${kind}_target`], toWords, {
    value: ['all'],
    origin: version.origin,
  });
  const names = target.value?.flatMap((text) => text.split(',').map((name) => name.trim())) ?? null;
  const all = names?.length === 1 && names[0] === 'all';
  return {
    setting: { value: `${kind}_adamw${states}${layerwise}`, origin },
    spec: {
      optimArgs: { value: rank.value === null ? null : `rank=${rank.value}`, origin: rank.origin },
      optimTargetModules: { value: all ? 'all-linear' : names, origin: target.origin },
    },
    diagnostics: [],
  };
}
