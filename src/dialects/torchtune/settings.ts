import { type Diagnostic, error, note, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type GradientCheckpointing,
  type LossImpl,
  type Origin,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileValue, Sharding } from '../dialect.ts';
import { type Convert, orNull, toBoolean, toFloatDType, toInteger, toNumber, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { TORCHTUNE } from './keys.ts';
import { type Builder, modelOf } from './models.ts';
import type { Recipe } from './recipes.ts';

export interface Part {
  readonly spec: TrainingSpec;
  readonly diagnostics: readonly Diagnostic[];
}

export const isOn = (reader: SettingReader, key: string): { readonly origin: Origin } | undefined => {
  const given = reader.given([key], orNull(toBoolean));
  return given?.value === true ? given : undefined;
};

const MISSING: Origin = { kind: 'derived', from: 'no such key in the config' };

/** A key that recipes read without a default: a config that lacks it stops them. */
export const needed = <T>(reader: SettingReader, key: string, convert: Convert<T>): Setting<T> =>
  reader.setting<T>([key], convert, { value: null, origin: MISSING });

/**
 * The folder of the checkpoint where it is on this machine, since it says most; else the model that the builder builds,
 * which is all that the recipe goes by; else the folder by its name.
 */
export function readModel(
  reader: SettingReader,
  builder: { readonly parsed: Builder; readonly origin: Origin } | undefined,
  context: ReadContext,
): Part {
  const dir = reader.given(['checkpointer.checkpoint_dir'], orNull(toText));
  const path = dir?.value ? dir.value.replace(/\/+$/, '').replace(/\/original$/, '') : undefined;
  if (dir && path && hasConfig(path, context)) {
    return { spec: { modelNameOrPath: { value: path, origin: dir.origin } }, diagnostics: [] };
  }
  const id = builder && modelOf(builder.parsed);
  if (builder && id) {
    const message = `${path ?? 'the checkpoint'} is not on this machine: the model is taken for ${id}, by its builder ${builder.parsed.base}`;
    return {
      spec: { modelNameOrPath: { value: id, origin: builder.origin } },
      diagnostics: [note('model-by-builder', message, { location: formatOrigin(builder.origin) })],
    };
  }
  if (dir && path) return { spec: { modelNameOrPath: { value: path, origin: dir.origin } }, diagnostics: [] };
  return { spec: {}, diagnostics: [] };
}

function hasConfig(path: string, { cwd, homeDir, files }: ReadContext): boolean {
  const absolute = path.startsWith('/') ? path : path.startsWith('~/') ? homeDir + path.slice(1) : `${cwd}/${path}`;
  return files.info(`${absolute}/config.json`)?.kind === 'file';
}

/** Weights, gradients and states all have `dtype`; there is no autocast, and fp16 is refused. */
export function readPrecision(reader: SettingReader): Part {
  const dtype = needed(reader, 'dtype', toFloatDType);
  const refused = dtype.value === 'fp16';
  return {
    spec: {
      dtype: dtype.value === null ? { value: null, origin: dtype.origin } : (dtype as Setting<'bf16'>),
      mixedPrecision: { value: 'no', origin: dtype.origin.kind === 'derived' ? TORCHTUNE : dtype.origin },
    },
    diagnostics: refused
      ? [
          error('bad-value', 'torchtune does not train in fp16', {
            location: formatOrigin(dtype.origin),
            help: 'write dtype: bf16, or dtype: fp32 on a card without bf16',
          }),
        ]
      : [],
  };
}

/** Rows: `batch_size` on each GPU, `gradient_accumulation_steps` of them a step. No default stands in for either. */
export function readBatch(reader: SettingReader): TrainingSpec {
  const micro = needed(reader, 'batch_size', toInteger(1));
  const evaluated = reader.given(['batch_size_val'], orNull(toInteger(1)));
  return {
    perDeviceTrainBatchSize: micro,
    gradientAccumulationSteps: needed(reader, 'gradient_accumulation_steps', toInteger(1)),
    perDeviceEvalBatchSize: evaluated?.value
      ? { value: evaluated.value, origin: evaluated.origin }
      : { value: micro.value, origin: { kind: 'derived', from: 'batch_size' } },
  };
}

/** Recipes of the development branch evaluate during training where a second dataset and an interval are given. */
export function readEval(reader: SettingReader): Setting<boolean> {
  const interval = reader.given(['run_val_every_n_steps'], orNull(toInteger(0)));
  const has = reader.values.find('dataset_val', 'dataset_val._component_') !== undefined;
  reader.note('dataset_val');
  return interval?.value && has
    ? { value: true, origin: interval.origin }
    : { value: false, origin: interval?.origin ?? TORCHTUNE };
}

/** Rows are cut to the tokenizer's `max_seq_len`; without one they are as long as the data. Packed rows are all that long. */
export function readRows(reader: SettingReader): TrainingSpec {
  reader.note('tokenizer', 'dataset', 'dataset.split_across_pack');
  const length = reader.setting<number | null>(['tokenizer.max_seq_len'], orNull(toInteger(1)), {
    value: null,
    origin: { kind: 'derived', from: 'tokenizer.max_seq_len, which is not set' },
  });
  const older = reader.given(['dataset.max_seq_len'], orNull(toInteger(1)));
  const packed = reader.setting<boolean | null>(['dataset.packed'], orNull(toBoolean), {
    value: false,
    origin: TORCHTUNE,
  });
  const packs = packed.value === true;
  return {
    maxLength:
      length.value === null && older?.value
        ? { value: older.value, origin: older.origin }
        : (length as Setting<number>),
    packing: { value: packs, origin: packed.origin },
    attentionMask: { value: false, origin: TORCHTUNE },
    // Packed rows are kept apart by a block mask, which flex attention takes.
    attnImplementation: {
      value: packs ? 'flex_attention' : 'sdpa',
      origin: packs ? packed.origin : TORCHTUNE,
    },
  };
}

/** Every layer is recomputed, without re-entry; offloading moves what is kept. */
export function readCheckpointing(reader: SettingReader): Part {
  const on = reader.setting<boolean | null>(['enable_activation_checkpointing'], orNull(toBoolean), {
    value: false,
    origin: TORCHTUNE,
  });
  const offload = isOn(reader, 'enable_activation_offloading');
  const mode = reader.given(['ac_mode'], orNull(toText));
  reader.note('ac_option');
  const value: GradientCheckpointing = {
    enabled: on.value === true,
    useReentrant: false,
    everyNLayers: 1,
    offload: offload !== undefined,
  };
  const diagnostics: Diagnostic[] = [];
  if (offload && !value.enabled) {
    diagnostics.push(
      error('bad-value', 'enable_activation_offloading needs enable_activation_checkpointing', {
        location: formatOrigin(offload.origin),
        help: 'set enable_activation_checkpointing: True beside it',
      }),
    );
  }
  if (mode?.value) {
    const message = `ac_mode ${mode.value} recomputes a part of the layers, which the estimate takes for ${value.enabled ? 'all' : 'none'}`;
    diagnostics.push(warning('not-estimated', message, { location: formatOrigin(mode.origin) }));
  }
  return { spec: { gradientCheckpointing: { value, origin: on.origin } }, diagnostics };
}

/** The step inside the backward pass: gradients end one by one. It takes neither accumulation nor clipping. */
export function readStep(reader: SettingReader, recipe: Recipe): Part {
  const fused = isOn(reader, 'optimizer_in_bwd');
  const clip = reader.setting<number | null>(['clip_grad_norm'], orNull(toClip), { value: null, origin: TORCHTUNE });
  const spec: TrainingSpec = {
    maxGradNorm: { value: clip.value ?? 0, origin: clip.origin },
    // A recipe for adapters does not look at the key.
    ...(fused && recipe.lora !== true ? { optimizerInBackward: { value: true, origin: fused.origin } } : {}),
  };
  if (!spec.optimizerInBackward) return { spec, diagnostics: [] };
  const steps = reader.given(['gradient_accumulation_steps'], toInteger(1));
  const wrong = steps && steps.value > 1 ? 'gradient_accumulation_steps: 1' : clip.value ? 'clip_grad_norm: null' : '';
  return {
    spec,
    diagnostics:
      wrong === ''
        ? []
        : [
            error('bad-value', `optimizer_in_bwd needs ${wrong}`, {
              location: formatOrigin(fused!.origin),
              help: `set ${wrong}, or optimizer_in_bwd: False`,
            }),
          ],
  };
}

/** `inf` measures the norm and clips nothing. */
const toClip: Convert<number> = (raw: FileValue) =>
  String(raw).toLowerCase().replace('.', '') === 'inf' ? { ok: true, value: 0 } : toNumber(raw);

const LOSSES: Readonly<Record<string, LossImpl>> = {
  CEWithChunkedOutputLoss: 'chunked_logits',
  LinearCrossEntropyLoss: 'chunked_logits',
  CrossEntropyLoss: 'full',
};

/** The usual losses split the tokens, but keep the log-probabilities of all of them for the backward pass. */
export function readLoss(reader: SettingReader, recipe: Recipe): Setting<LossImpl> {
  reader.note('loss.num_output_chunks', 'loss.ignore_index');
  const given = reader.given(['loss._component_'], orNull(toText));
  const name = given?.value?.split('.').at(-1);
  const value = recipe.objective === 'sft' && name !== undefined ? LOSSES[name] : undefined;
  return { value: value ?? 'full', origin: given?.origin ?? TORCHTUNE };
}

/** Distributed recipes are FSDP 2, over every GPU that takes part. */
export function readSharding(
  reader: SettingReader,
  distributed: boolean,
): { readonly sharding: Sharding | undefined; readonly diagnostics: readonly Diagnostic[] } {
  const older = isOn(reader, 'fsdp.cpu_offload');
  const cpu = isOn(reader, 'fsdp_cpu_offload') ?? older;
  const reshard = reader.given(['fsdp_reshard_after_forward'], orNull(toBoolean));
  const replicate = reader.given(['data_parallel_replicate_dim'], orNull(toInteger(-1)));
  reader.note('data_parallel_shard_dim', 'custom_sharded_layers', 'tensor_parallel_plan', 'memory_efficient_fsdp_wrap');
  const split = ['tensor_parallel_dim', 'context_parallel_dim'].flatMap((key): Diagnostic[] => {
    const given = reader.given([key], orNull(toInteger(1)));
    if (!given?.value || given.value === 1) return [];
    const message = `${key} ${given.value} is not estimated: each GPU will need less than predicted`;
    return [warning('not-estimated', message, { location: formatOrigin(given.origin) })];
  });
  if (!distributed) return { sharding: undefined, diagnostics: [] };
  const whole = reshard?.value === false ? reshard : undefined;
  const hybrid = replicate?.value && replicate.value > 1 ? replicate : undefined;
  return {
    sharding: {
      strategy: hybrid ? 'hsdp' : whole ? 'zero2' : 'fsdp2',
      offload: cpu ? ['optimizer', 'parameters'] : [],
      origin: (hybrid ?? whole ?? cpu)?.origin ?? TORCHTUNE,
    },
    diagnostics: [
      ...split,
      ...(whole
        ? [
            note('like-zero2', 'parameters that stay whole after the forward pass are estimated like ZeRO-2', {
              location: formatOrigin(whole.origin),
            }),
          ]
        : []),
    ],
  };
}
