import { type Diagnostic, error, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type GradientCheckpointing,
  type Origin,
  type Setting,
  type Strategy,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { Sharding } from '../dialect.ts';
import { accumulationOf, type GlobalBatch } from '../global-batch.ts';
import { orNull, toBoolean, toInteger, toNumber, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';

/** Source: llmfoundry/utils/config_utils.py of 0.22, composer/utils/parallelism.py of 0.32. */
export const FOUNDRY: Origin = { kind: 'default', tool: 'llm-foundry', version: '0.22' };

const PRECISIONS: Readonly<Record<string, 'no' | 'bf16' | 'fp16'>> = { fp32: 'no', amp_bf16: 'bf16', amp_fp16: 'fp16' };

/** Precision, optimizer, clipping, evaluation, workers. */
export function readTraining(reader: SettingReader): TrainingSpec {
  const precision = reader.setting<string>(['precision'], toText, { value: 'amp_bf16', origin: FOUNDRY });
  const clip = reader.given(['algorithms.gradient_clipping.clipping_threshold'], toNumber);
  reader.note('algorithms', 'algorithms.gradient_clipping');
  const workers = reader.setting<number>(['train_loader.num_workers'], toInteger(0), { value: 0, origin: FOUNDRY });
  const pinned = reader.setting<boolean>(['train_loader.pin_memory'], toBoolean, { value: true, origin: FOUNDRY });
  const evaluated = ['eval_loader', 'icl_tasks'].map((key) => reader.values.find(key)).find((each) => each?.raw);
  reader.note('eval_loader', 'icl_tasks');
  return {
    mixedPrecision: { value: PRECISIONS[precision.value?.toLowerCase() ?? ''] ?? null, origin: precision.origin },
    optim: readOptimizer(reader),
    maxGradNorm: clip ?? { value: 0, origin: FOUNDRY },
    eval: { value: evaluated !== undefined, origin: evaluated?.origin ?? FOUNDRY },
    dataloaderNumWorkers: workers,
    dataloaderPinMemory: pinned,
  };
}

/** Its optimizers by what they keep: Lion has one state, AdamW two. */
const OPTIMIZERS: Readonly<Record<string, string>> = {
  decoupled_adamw: 'adamw_torch',
  adamw: 'adamw_torch',
  decoupled_lionw: 'lion_32bit',
  clip_lion: 'lion_32bit',
  adalr_lion: 'lion_32bit',
};

function readOptimizer(reader: SettingReader): Setting<string> {
  const name = reader.setting<string>(['optimizer.name'], toText, { value: null, origin: FOUNDRY });
  return { value: (name.value && OPTIMIZERS[name.value]) || null, origin: name.origin };
}

/** Rows are padded to `max_seq_len` in fine-tuning, and filled in pretraining or with a packing ratio. */
export function readLength(reader: SettingReader): TrainingSpec {
  const length = reader.setting<number>(['max_seq_len'], toInteger(1), { value: null, origin: FOUNDRY });
  const loader = reader.given(['train_loader.name'], toText);
  const ratio = reader.given(['train_loader.dataset.packing_ratio'], orNull(toText));
  const filled = loader?.value === 'text' ? loader : ratio?.value ? ratio : undefined;
  reader.note(
    'train_loader.dataset.max_seq_len',
    'tokenizer.kwargs.model_max_length',
    'eval_loader.dataset.max_seq_len',
  );
  return {
    maxLength: length,
    packing: { value: filled !== undefined, origin: filled?.origin ?? FOUNDRY },
    attentionMask: { value: loader?.value !== 'text', origin: loader?.origin ?? FOUNDRY },
  };
}

export interface BatchReading {
  readonly spec: TrainingSpec;
  readonly batch: GlobalBatch | undefined;
  readonly diagnostics: readonly Diagnostic[];
}

/** The global batch is given, accumulation follows, rounded up. Source: config_utils.py `calculate_batch_size_info`. */
export function readBatch(reader: SettingReader, world: number | undefined): BatchReading {
  const rows = reader.setting<number>(['global_train_batch_size'], toInteger(1), { value: null, origin: FOUNDRY });
  const given = reader.values.find('device_train_microbatch_size');
  const searched = given === undefined || given.raw === 'auto';
  const asked: Setting<number> = searched
    ? { value: null, origin: given?.origin ?? FOUNDRY }
    : reader.setting<number>(['device_train_microbatch_size'], toInteger(1), { value: null, origin: FOUNDRY });
  reader.note('device_train_microbatch_size', 'device_train_batch_size');
  const batch = rows.value && world ? { rows: rows.value, replicas: world } : undefined;
  const share = batch && batch.rows / batch.replicas;
  // A micro batch above a GPU's share is cut to it.
  const micro = asked.value !== null && share ? { ...asked, value: Math.min(asked.value, Math.ceil(share)) } : asked;
  const evalRows = reader.setting<number>(['device_eval_batch_size'], toInteger(1), {
    value: searched ? 1 : micro.value,
    origin: searched ? FOUNDRY : { kind: 'derived', from: 'the training micro batch' },
  });
  const diagnostics: Diagnostic[] = [];
  if (searched) {
    diagnostics.push(
      warning(
        'auto-find-batch-size',
        'device_train_microbatch_size auto makes the trainer shrink its own micro batch',
        {
          location: formatOrigin(micro.origin),
          help: 'name a number: device_train_microbatch_size: 1',
        },
      ),
    );
  }
  if (share && !Number.isInteger(share)) {
    diagnostics.push(
      error('batch-size', `a step of ${batch.rows} rows cannot be shared by ${batch.replicas} GPUs`, {
        location: formatOrigin(rows.origin),
        help: `make global_train_batch_size a multiple of ${batch.replicas}`,
      }),
    );
  }
  return {
    spec: {
      perDeviceTrainBatchSize: micro,
      gradientAccumulationSteps: accumulationOf(batch, micro.value, Math.ceil, rows.origin),
      perDeviceEvalBatchSize: evalRows,
    },
    batch,
    diagnostics,
  };
}

const STRATEGIES: Readonly<Record<string, Strategy>> = {
  FULL_SHARD: 'fsdp1',
  SHARD_GRAD_OP: 'zero2',
  NO_SHARD: 'ddp',
  HYBRID_SHARD: 'hsdp',
};

const OFF: GradientCheckpointing = { enabled: false, useReentrant: true, everyNLayers: 1, offload: false };

/** FSDP with its own activation checkpointing; one process alone drops both. Source: command_utils/train.py `train`. */
export function readFsdp(
  reader: SettingReader,
  world: number | undefined,
): {
  readonly sharding?: Sharding;
  readonly gradientCheckpointing: Setting<GradientCheckpointing>;
  readonly dropped?: Origin;
  readonly diagnostics: readonly Diagnostic[];
} {
  const found = reader.values.find('fsdp_config');
  reader.note('fsdp_config', 'fsdp_config.cpu_offload');
  const on = (name: string, otherwise: boolean): Setting<boolean> =>
    reader.setting<boolean>([`fsdp_config.${name}`], toBoolean, { value: otherwise, origin: FOUNDRY });
  const strategy = reader.setting<string>(['fsdp_config.sharding_strategy'], toText, {
    value: 'FULL_SHARD',
    origin: found?.origin ?? FOUNDRY,
  });
  const enabled = on('activation_checkpointing', false);
  const reentrant = on('activation_checkpointing_reentrant', true);
  const offload = on('activation_cpu_offload', false);
  const moved = on('cpu_offload', false);
  const none: Setting<GradientCheckpointing> = { value: OFF, origin: FOUNDRY };
  if (!found || found.raw === null) return { gradientCheckpointing: none, diagnostics: [] };
  if (world === 1) return { gradientCheckpointing: none, dropped: found.origin, diagnostics: [] };
  const tensor = reader.values.find('tp_config');
  return {
    sharding: {
      strategy: STRATEGIES[strategy.value?.toUpperCase() ?? ''] ?? null,
      offload: moved.value ? ['optimizer', 'parameters'] : [],
      origin: strategy.origin,
    },
    gradientCheckpointing: {
      value: {
        enabled: enabled.value === true,
        useReentrant: enabled.value === true && reentrant.value === true,
        everyNLayers: 1,
        offload: offload.value === true,
      },
      origin: enabled.origin,
    },
    diagnostics: tensor?.raw
      ? [
          warning('not-estimated', 'tensor parallelism splits every layer over several GPUs, which is left out', {
            location: formatOrigin(tensor.origin),
          }),
        ]
      : [],
  };
}
