import { type Diagnostic, note, warning } from '../../core/index.ts';
import {
  type AttnImplementation,
  formatOrigin,
  type GradientCheckpointing,
  type LossImpl,
  type Objective,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';

import { orNull, toBoolean, toInteger, toMap, toText, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { OPTIMIZERS } from '../hf-trainer/fields.ts';
import { AXOLOTL } from './fields.ts';

export interface Part<T> {
  readonly setting: Setting<T>;
  readonly diagnostics: readonly Diagnostic[];
}

const part = <T>(setting: Setting<T>, ...diagnostics: readonly Diagnostic[]): Part<T> => ({ setting, diagnostics });
const notEstimated = (message: string, { origin }: { readonly origin: Setting<unknown>['origin'] }): Diagnostic =>
  warning('not-estimated', message, { location: formatOrigin(origin) });
export const isOn = (reader: SettingReader, key: string): boolean =>
  reader.given([key], orNull(toBoolean))?.value === true;

/** `batch_size` is that of one device, and accumulation follows from it. Source: utils/config `normalize_config`. */
export function readBatch(reader: SettingReader): TrainingSpec {
  const micro = reader.setting<number>(['micro_batch_size'], toInteger(1), { value: 1, origin: AXOLOTL });
  const whole = reader.given(['batch_size'], orNull(toInteger(1)));
  const given = reader.given(['gradient_accumulation_steps'], orNull(toInteger(1)));
  const evaluated = reader.given(['eval_batch_size'], orNull(toInteger(1)));
  const accumulation: Setting<number> = given?.value
    ? { value: given.value, origin: given.origin }
    : whole?.value && micro.value !== null
      ? { value: Math.max(1, Math.floor(whole.value / micro.value)), origin: whole.origin }
      : reader.setting(['gradient_accumulation_steps'], toInteger(1), { value: 1, origin: AXOLOTL });
  return {
    perDeviceTrainBatchSize: micro,
    gradientAccumulationSteps: accumulation,
    perDeviceEvalBatchSize: evaluated?.value
      ? { value: evaluated.value, origin: evaluated.origin }
      : { value: micro.value, origin: { kind: 'derived', from: 'micro_batch_size' } },
  };
}

const OBJECTIVES: Readonly<Record<string, Objective | null>> = {
  dpo: 'dpo',
  ipo: 'dpo',
  // Preferences without a reference model.
  orpo: 'orpo',
  simpo: 'orpo',
  kto: 'kto',
  grpo: 'grpo',
  gdpo: 'grpo',
  ebft: null,
};

export function readObjective(reader: SettingReader): Part<Objective> {
  reader.note('trl', 'vllm', 'test_datasets', 'precompute_ref_log_probs');
  const rl = reader.given(['rl'], orNull(toText));
  if (rl?.value) {
    const objective = OBJECTIVES[rl.value] ?? null;
    const setting = { value: objective, origin: rl.origin };
    return objective === null ? part(setting, notEstimated(`rl ${rl.value} is not estimated`, rl)) : part(setting);
  }
  for (const [key, value] of [
    ['reward_model', 'reward'],
    ['process_reward_model', 'classification'],
  ] as const) {
    const given = reader.given([key], orNull(toBoolean));
    if (given?.value) return part({ value, origin: given.origin });
  }
  const raw = reader.values.find('pretraining_dataset');
  reader.note('pretraining_dataset');
  return part(raw ? { value: 'clm', origin: raw.origin } : { value: 'sft', origin: AXOLOTL });
}

/** Tokens a row; a trainer that writes its rows itself has the completion's bound. */
export function readLength(reader: SettingReader, objective: Objective | null): Part<number> {
  reader.note('eval_sequence_len', 'excess_length_strategy', 'pad_to_sequence_len', 'pad_to_multiple_of');
  const length = reader.setting<number>(['sequence_len'], toInteger(1), { value: 512, origin: AXOLOTL });
  if (objective !== 'grpo') return part(length);
  const trl = reader.given(['trl'], orNull(toMap));
  const completion = Number(trl?.value?.max_completion_length ?? Number.NaN);
  const setting = Number.isInteger(completion) ? { value: completion, origin: trl!.origin } : length;
  return part(
    setting,
    warning('prompts-not-counted', 'rows are taken as long as the completions: prompts come on top', {
      location: formatOrigin(setting.origin),
    }),
  );
}

/** Backends that keep packed rows apart by themselves, so that no mask is handed on. */
const DECONTAMINATES = [
  'flash_attention_2',
  'flash_attention_3',
  'flex_attention',
  'xformers',
  'sage',
  'sdpa',
  'eager',
];

export function readPacking(reader: SettingReader, attention: string | undefined): TrainingSpec {
  const packing = reader.setting<boolean | null>(['sample_packing'], orNull(toBoolean), {
    value: false,
    origin: AXOLOTL,
  });
  const packs = packing.value === true;
  const known = attention !== undefined && (DECONTAMINATES.includes(attention) || attention.includes('/'));
  return {
    packing: { value: packs, origin: packing.origin },
    attentionMask: { value: !(packs && known), origin: packs ? packing.origin : AXOLOTL },
  };
}

/** Older switches, the specific before the general. Source: utils/schemas/enums.py LEGACY_ATTN_FLAG_TO_IMPL. */
export const ATTENTION_SWITCHES = [
  ['xformers_attention', 'xformers'],
  ['sage_attention', 'sage'],
  ['flex_attention', 'flex_attention'],
  ['flash_attention', 'flash_attention_2'],
  ['sdp_attention', 'sdpa'],
  ['eager_attention', 'eager'],
] as const;

/** The kernel whose memory each backend has. */
const BACKENDS: Readonly<Record<string, AttnImplementation>> = {
  eager: 'eager',
  sdpa: 'sdpa',
  fp8: 'sdpa',
  xformers: 'sdpa',
  sage: 'flash_attention_2',
  flash_attention_2: 'flash_attention_2',
  flash_attention_3: 'flash_attention_3',
  flash_attention_4: 'flash_attention_3',
  flash_attention_torch: 'sdpa',
  flex_attention: 'flex_attention',
};

/** `name`: the backend as axolotl calls it; undefined: left to transformers, which takes sdpa. */
export function readAttention(reader: SettingReader): Part<AttnImplementation> & { readonly name: string | undefined } {
  reader.note('attn_implementation', ...ATTENTION_SWITCHES.map(([key]) => key));
  const given = reader.given(['attn_implementation'], orNull(toText));
  const legacy = ATTENTION_SWITCHES.find(([key]) => isOn(reader, key));
  const origin = given?.value ? given.origin : legacy ? reader.values.find(legacy[0])!.origin : AXOLOTL;
  const name = given?.value ?? legacy?.[1];
  if (name === undefined) return { ...part({ value: 'sdpa', origin }), name };
  const hub = /flash-attn-?([23])/.exec(name)?.[1];
  const value = BACKENDS[name] ?? (hub === '3' ? 'flash_attention_3' : name.includes('/') ? 'flash_attention_2' : null);
  const both = given?.value && legacy;
  const problems: Diagnostic[] = [];
  if (value === null) {
    problems.push(
      warning('unknown-value', `attn_implementation ${name} is no backend that axolotl knows`, {
        location: formatOrigin(origin),
        help: 'sdpa, flash_attention_2, flash_attention_3, flex_attention or eager',
      }),
    );
  } else if (both) {
    problems.push(
      warning('conflict', `attn_implementation and ${legacy[0]} are both set, and axolotl stops at that`, {
        location: formatOrigin(origin),
        help: `take ${legacy[0]} out`,
      }),
    );
  } else if (value !== name) {
    problems.push(
      note('like-another', `attention by ${name} is estimated like ${value}`, { location: formatOrigin(origin) }),
    );
  }
  return { ...part({ value, origin }, ...problems), name };
}

/**
 * With an adapter, offloading takes the place of recomputing; in full training the recomputation stays and only what it keeps
 * is moved. Source: core/builders/base.py `_configure_gradient_checkpointing`, loaders/model.py.
 */
export function readCheckpointing(reader: SettingReader, hasAdapter: boolean): Part<GradientCheckpointing> {
  const found = reader.values.find('gradient_checkpointing');
  const offload = reader.values.find('activation_offloading');
  reader.note('gradient_checkpointing', 'activation_offloading', 'selective_checkpointing', 'layer_offloading');
  const kwargs = reader.given(['gradient_checkpointing_kwargs'], orNull(toMap));
  const word = String(found?.raw ?? 'false').toLowerCase();
  const old = word.startsWith('offload');
  const enabled = /^(?:true|yes|on|1|unsloth)$/.test(word) || old;
  const origin = found?.origin ?? AXOLOTL;
  const moves = String(old ? (word === 'offload_disk' ? 'disk' : 'true') : (offload?.raw ?? 'false')).toLowerCase();
  const moved = enabled && !/^(?:false|no|0)$/.test(moves);
  const said = kwargs?.value?.use_reentrant;
  const torchs = reader.values.find('rl', 'unfrozen_parameters') === undefined && moves !== 'hidden_states';
  const useReentrant = typeof said === 'boolean' ? said : torchs;
  const notes: Diagnostic[] = [];
  if (moves === 'disk')
    notes.push(
      warning('nvme-offload', 'activations on disk are counted as host memory here', {
        location: formatOrigin(offload?.origin ?? origin),
      }),
    );
  for (const key of ['selective_checkpointing', 'layer_offloading', 'tiled_mlp']) {
    const given = reader.values.find(key);
    reader.note(key);
    if (given && given.raw !== false) notes.push(notEstimated(`${key} is not estimated`, given));
  }
  const common = { everyNLayers: 1, offload: moved };
  const value: GradientCheckpointing =
    moved && moves !== 'hidden_states'
      ? { ...common, enabled: !hasAdapter, useReentrant: false }
      : { ...common, enabled, useReentrant: enabled && useReentrant };
  return part({ value, origin: moved && offload ? offload.origin : origin }, ...notes);
}

export const CCE_PLUGIN = 'axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin';
export const LIGER_PLUGIN = 'axolotl.integrations.liger.LigerPlugin';

export const pluginsOf = (reader: Pick<SettingReader, 'given'>): readonly string[] =>
  reader.given(['plugins'], orNull(toWords))?.value ?? [];

/** A key of a plugin that is not loaded is dropped without a word. */
export function readLoss(reader: SettingReader, objective: Objective | null): Part<LossImpl> {
  reader.note('plugins', 'chunked_cross_entropy', 'chunked_cross_entropy_num_chunks', 'liger_cross_entropy');
  const plugins = reader.given(['plugins'], orNull(toWords));
  const has = (name: string): boolean => plugins?.value?.some((each) => each.endsWith(name)) ?? false;
  const cce = reader.given(['cut_cross_entropy'], orNull(toBoolean));
  const liger = reader.given(['liger_fused_linear_cross_entropy'], orNull(toBoolean));
  const dpo = reader.given(['dpo_use_liger_kernel'], orNull(toBoolean));
  const trl = reader.given(['trl'], orNull(toMap));
  const full: Setting<LossImpl> = { value: 'full', origin: AXOLOTL };
  if (objective === 'dpo') return part(dpo?.value ? { value: 'fused', origin: dpo.origin } : full);
  if (objective === 'grpo')
    return part(trl?.value?.use_liger_loss === true ? { value: 'fused', origin: trl.origin } : full);
  if (objective !== 'sft' && objective !== 'clm') return part(full);
  if (has('CutCrossEntropyPlugin') && cce?.value !== false) return part({ value: 'fused', origin: plugins!.origin });
  if (liger?.value && has('LigerPlugin')) return part({ value: 'fused', origin: liger.origin });
  const lost = liger?.value ? liger : cce?.value ? cce : undefined;
  if (!lost) return part(full);
  const [key, plugin] = liger?.value
    ? ['liger_fused_linear_cross_entropy', LIGER_PLUGIN]
    : ['cut_cross_entropy', CCE_PLUGIN];
  return part(
    full,
    warning('no-effect', `${key} does nothing without its plugin`, {
      location: formatOrigin(lost.origin),
      help: `add ${plugin} to plugins:`,
    }),
  );
}

/** Runs only with something to evaluate and a time for it. Source: `_configure_save_and_eval_strategy`. */
export function readEval(reader: SettingReader): Setting<boolean> {
  reader.note('val_set_size', 'test_datasets', 'evals_per_epoch', 'eval_steps', 'eval_strategy', 'evaluation_strategy');
  const size = reader.values.find('val_set_size');
  const tests = reader.values.find('test_datasets');
  const held = (size !== undefined && Number(size.raw) > 0) || tests !== undefined;
  const what = (tests ?? size)?.origin ?? AXOLOTL;
  if (!held) return { value: false, origin: what };
  const strategy = reader.values.find('eval_strategy', 'evaluation_strategy');
  const when = reader.values.find('evals_per_epoch', 'eval_steps') ?? (strategy?.raw === 'no' ? undefined : strategy);
  return { value: when !== undefined && String(when.raw) !== '0', origin: when?.origin ?? what };
}

/** Optimizers that axolotl brings beside transformers' own, by the one whose states they have. */
const OWN_OPTIMIZERS: Readonly<Record<string, string>> = {
  optimi_adamw: 'adamw_torch_fused',
  adopt_adamw: 'adamw_torch',
  adamc: 'adamw_torch',
  ao_adamw_4bit: 'adamw_torch_4bit',
  ao_adamw_8bit: 'adamw_torch_8bit',
  ao_adamw_fp8: 'adamw_torch_8bit',
};

export function readOptimizer(reader: SettingReader): Part<string> {
  reader.note('optim_args', 'optim_target_modules');
  const given = reader.given(['optimizer'], orNull(toText));
  if (!given?.value) return part({ value: 'adamw_torch_fused', origin: AXOLOTL });
  const { value, origin } = given;
  if (OPTIMIZERS.includes(value)) return part({ value, origin });
  const like = OWN_OPTIMIZERS[value];
  if (like) {
    const message = `optimizer ${value} is estimated like ${like}`;
    return part({ value: like, origin }, note('like-another', message, { location: formatOrigin(origin) }));
  }
  return part<string>({ value: null, origin }, notEstimated(`optimizer ${value} is not estimated`, given));
}

/** One worker a GPU of the run unless one of three keys is set. Source: schemas/config.py `default_dataloader_opts`. */
export function readWorkers(reader: SettingReader): TrainingSpec {
  reader.note('dataloader_prefetch_factor', 'dataset_num_proc', 'dataset_processes');
  const workers = reader.given(['dataloader_num_workers'], orNull(toInteger(0)));
  const pin = reader.given(['dataloader_pin_memory'], orNull(toBoolean));
  const untouched = !workers && !pin && !reader.values.find('dataloader_prefetch_factor');
  const number: Setting<number> = { value: workers?.value ?? (untouched ? 1 : 0), origin: workers?.origin ?? AXOLOTL };
  return {
    dataloaderNumWorkers: number,
    dataloaderPinMemory: { value: pin?.value ?? true, origin: pin?.origin ?? AXOLOTL },
  };
}
