import { error, fail, ok, type Result } from '../../core/index.ts';
import {
  formatOrigin,
  type GradientCheckpointing,
  type Origin,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { ResumeSupport } from '../contract.ts';
import type { Claim, Position, Reading, Sharding } from '../dialect.ts';
import { accumulationOf, worldSize } from '../global-batch.ts';
import { toBoolean, toInteger, toNumber, toOneOf, toText } from '../hf-argparser/convert.ts';
import { readFlags } from '../hf-argparser/flag-launch.ts';
import { leftOver } from '../hf-argparser/left-over.ts';
import { type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { IDLE_OPTIONS, MEGATRON_GRAMMAR } from './fields.ts';
import { readModel } from './model.ts';

/** Megatron Core as read. */
const MEGATRON: Origin = { kind: 'default', tool: 'megatron-core', version: '0.20' };

/** Reads the flags of a Megatron-LM script. What the step holds there follows rules of its own, so nothing is predicted. */
export function readMegatron(claim: Claim, position: Position): Result<Reading> {
  const { values, problems } = readFlags(position.argv, position.target!.argsFrom, MEGATRON_GRAMMAR);
  const reader = settingReader(values, true);
  const size = (key: string): Setting<number> =>
    reader.setting<number>([key], toInteger(1), { value: 1, origin: MEGATRON });
  const tensor = size('tensor_model_parallel_size');
  const pipeline = size('pipeline_model_parallel_size');
  const context = size('context_parallel_size');
  const micro = reader.setting<number>(['micro_batch_size'], toInteger(1), { value: null, origin: MEGATRON });
  const precision = readPrecision(reader);
  const objective = reader.given(['sft'], toBoolean);
  const shards = [tensor, pipeline, context].map((each) => each.value ?? Number.NaN);
  const optimizer = readOptimizer(reader);
  const evalRows = reader.setting<number>(['eval_micro_batch_size'], toInteger(1), {
    value: micro.value,
    origin: { kind: 'derived', from: 'the training micro batch' },
  });
  const evalSteps = reader.setting<number>(['eval_iters'], toInteger(0), { value: 100, origin: MEGATRON });
  reader.note('eval_interval', 'transformer_impl');
  const output = reader.given(['save'], toText);
  const spec: TrainingSpec = {
    ...readModel(reader, tensor.value ?? 1),
    objective: objective?.value
      ? { value: 'sft', origin: objective.origin }
      : { value: 'clm', origin: { kind: 'argv', index: claim.from } },
    method: { value: 'full', origin: MEGATRON },
    dtype: precision.value === 'no' ? { ...precision, value: 'fp32' } : (precision as Setting<'bf16' | 'fp16'>),
    mixedPrecision: precision,
    perDeviceTrainBatchSize: micro,
    perDeviceEvalBatchSize: evalRows,
    eval: { value: evalSteps.value !== 0, origin: evalSteps.origin },
    gradientAccumulationSteps: readAccumulation(reader, position, micro, shards),
    maxLength: reader.setting<number>(['seq_length', 'encoder_seq_length'], toInteger(1), {
      value: null,
      origin: MEGATRON,
    }),
    // Its data sets cut one long text into rows of exactly that length.
    packing: { value: true, origin: MEGATRON },
    attnImplementation: readAttention(reader),
    gradientCheckpointing: readRecompute(reader),
    optim: optimizer,
    maxGradNorm: reader.setting<number>(['clip_grad'], toNumber, { value: 1, origin: MEGATRON }),
    lossImpl: readLoss(reader),
    dataloaderNumWorkers: reader.setting<number>(['num_workers'], toInteger(0), { value: 2, origin: MEGATRON }),
    ...(output ? { outputDir: output } : {}),
  };
  const errors = [...problems, ...reader.diagnostics].filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  const parts = [
    ['tensor', tensor],
    ['pipeline', pipeline],
    ['context', context],
  ] as const;
  const split = parts.flatMap(([name, { value }]) => (value === 1 ? [] : [`${name} parallel ${value ?? 'unknown'}`]));
  const how = split.length > 0 ? ` (${split.join(', ')})` : '';
  return ok({
    spec,
    sharding: readSharding(reader),
    unread: [
      ...reader.unread,
      ...leftOver(reader, (key) => (IDLE_OPTIONS.has(key) ? 'no-effect-on-memory' : 'not-estimated')),
    ],
    diagnostics: reader.diagnostics,
    notEstimated: error('not-estimated', `Megatron's flags are read${how}, but what its step holds is not modelled`, {
      location: `argv[${claim.from}]`,
      notes: ['it keeps gradients in fp32 beside 16-bit weights, and splits layers over GPUs in ways of its own'],
      help: 'run it with --mode warn: snug then watches the run and says what ended it',
    }),
    resume: resumeOf(reader),
    detail: undefined,
  });
}

function readPrecision(reader: SettingReader): Setting<'no' | 'bf16' | 'fp16'> {
  for (const name of ['bf16', 'fp16'] as const) {
    const given = reader.given([name], toBoolean);
    if (given?.value) return { value: name, origin: given.origin };
  }
  return { value: 'no', origin: MEGATRON };
}

/** `global ÷ (micro × data-parallel size)`; without a global batch each step is one pass. Source: num_microbatches_calculator.py. */
function readAccumulation(
  reader: SettingReader,
  position: Position,
  micro: Setting<number>,
  shards: readonly number[],
): Setting<number> {
  const rows = reader.given(['global_batch_size'], toInteger(1));
  const growing = reader.values.find('rampup_batch_size');
  reader.note('rampup_batch_size');
  if (growing) return { value: null, origin: growing.origin };
  if (!rows) return { value: 1, origin: MEGATRON };
  const world = worldSize(position);
  const replicas = shards.reduce((left, shard) => left / shard, world ?? Number.NaN);
  if (!Number.isInteger(replicas)) return { value: null, origin: rows.origin };
  return accumulationOf({ rows: rows.value, replicas }, micro.value, Math.floor, rows.origin);
}

function readAttention(reader: SettingReader): NonNullable<TrainingSpec['attnImplementation']> {
  const flash = reader.given(['use_flash_attn'], toBoolean);
  const backend = reader.given(['attention_backend'], toOneOf('auto', 'flash', 'fused', 'unfused', 'local'));
  if (backend?.value === 'flash') return { value: 'flash_attention_2', origin: backend.origin };
  if (backend?.value === 'unfused') return { value: 'eager', origin: backend.origin };
  if (flash?.value) return { value: 'flash_attention_2', origin: flash.origin };
  return { value: 'sdpa', origin: backend?.origin ?? MEGATRON };
}

const OFF: GradientCheckpointing = { enabled: false, useReentrant: true, everyNLayers: 1, offload: false };

/** `full` keeps what enters each group of layers; `selective` recomputes parts of a layer, which no setting here says. */
function readRecompute(reader: SettingReader): Setting<GradientCheckpointing> {
  const granularity = reader.given(['recompute_granularity'], toOneOf('full', 'selective'));
  const method = reader.given(['recompute_method'], toOneOf('uniform', 'block'));
  const layers = reader.given(['recompute_num_layers'], toInteger(1));
  const parts = reader.given(['recompute_activations'], toBoolean);
  if (parts?.value) return { value: null, origin: parts.origin };
  if (!granularity) return { value: OFF, origin: MEGATRON };
  // `block` recomputes the first n layers of each pipeline stage only.
  if (granularity.value === 'selective' || method?.value === 'block')
    return { value: null, origin: granularity.origin };
  return { value: { ...OFF, enabled: true, everyNLayers: layers?.value ?? 1 }, origin: granularity.origin };
}

function readOptimizer(reader: SettingReader): Setting<string> {
  const given = reader.setting<string>(['optimizer'], toText, { value: 'adam', origin: MEGATRON });
  const known = given.value === 'adam' ? 'adamw_torch_fused' : given.value === 'sgd' ? 'sgd' : null;
  return { value: known, origin: given.origin };
}

function readLoss(reader: SettingReader): NonNullable<TrainingSpec['lossImpl']> {
  const fused = reader.given(['cross_entropy_loss_fusion'], toBoolean);
  return fused?.value ? { value: 'fused_logits', origin: fused.origin } : { value: 'full', origin: MEGATRON };
}

/** The distributed optimizer shares out the states, as ZeRO-1 does. */
function readSharding(reader: SettingReader): Sharding {
  const on = (...keys: readonly string[]): Origin | undefined =>
    keys.map((key) => reader.given([key], toBoolean)).find((given) => given?.value)?.origin;
  const offload = on('optimizer_cpu_offload') ? (['optimizer'] as const) : [];
  reader.note('megatron_fsdp_version', 'data_parallel_sharding_strategy');
  const torch = on('use_torch_fsdp2');
  if (torch) return { strategy: 'fsdp2', offload, origin: torch };
  const own = on('use_megatron_fsdp', 'use_custom_fsdp');
  if (own) return { strategy: 'fsdp1', offload, origin: own };
  const distributed = on('use_distributed_optimizer');
  return distributed
    ? { strategy: 'zero1', offload, origin: distributed }
    : { strategy: 'ddp', offload, origin: MEGATRON };
}

/** It loads what `--load` holds; only the same folder as `--save` goes on from its own last checkpoint. */
function resumeOf(reader: SettingReader): ResumeSupport {
  const [save, load] = [reader.given(['save'], toText), reader.given(['load'], toText)];
  if (save && load && save.value === load.value) {
    return { kind: 'supported', how: `by itself from the last checkpoint in ${load.value}` };
  }
  const where = load ? ` (${formatOrigin(load.origin)})` : '';
  return { kind: 'unsupported', reason: `--load${where} and --save name no common folder, and flags are not written` };
}
