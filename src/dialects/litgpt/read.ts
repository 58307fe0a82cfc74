import { type Diagnostic, type FloatDType, fail, ok, type Result, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type GradientCheckpointing,
  type MixedPrecision,
  type Origin,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { ReadContext, ResumeSupport } from '../contract.ts';
import type { FileValue, Position, Reading, Sharding } from '../dialect.ts';
import { type Convert, orNull, toInteger, toNumber, toOneOf, toText } from '../hf-argparser/convert.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import type { Values } from '../hf-argparser/values.ts';
import { readOptimizerClass } from '../optimizer-class.ts';
import { type Places, placesOf, readAdapter } from './adapter.ts';
import { readArguments } from './arguments.ts';
import type { LitgptStart } from './detect.ts';
import { LITGPT, LITGPT_KEYS, TASKS, type Task, TRAIN_KEYS } from './keys.ts';
import { readModel } from './model.ts';

export interface LitgptDetail {
  readonly values: Values;
  readonly task: Task;
  readonly places: Places;
  /** Settings stand in the text of an older script. */
  readonly inScript: boolean;
}

/** Reads a launch of litgpt: options after the config over the config over the defaults of the command. */
export function readLitgpt(
  start: LitgptStart,
  position: Position,
  context: ReadContext,
): Result<Reading<LitgptDetail>> {
  const args = readArguments(start, position, context);
  if (!args.ok) return args;
  const { values, config } = args.value;
  const { task } = start;
  const reader = settingReader(values, true);
  reader.note('train', 'eval', 'optimizer', 'data', 'data.init_args');
  const model = readModel(reader, context);
  const precision = readPrecision(reader);
  const dtype = (precision.dtype?.value ?? 'bf16') as FloatDType;
  const devices = readDevices(reader, task, position);
  const ranks = devices.perNode === null || devices.nodes === null ? null : devices.perNode * devices.nodes;
  const name = model.modelNameOrPath?.value ?? '';
  const mixed = precision.mixedPrecision?.value !== 'no';
  const adapter = readAdapter(reader, task, name, dtype, mixed, ranks);
  const optimizer = readOptimizer(reader, task, adapter.quantized);
  const batch = readBatch(reader, task, ranks);
  const sharding = readSharding(task, ranks, devices.origin);
  const spec: TrainingSpec = {
    ...model,
    objective: { value: task === 'pretrain' ? 'clm' : 'sft', origin: { kind: 'derived', from: `litgpt ${task}` } },
    ...precision,
    ...batch.spec,
    // Two batches run before training in any case.
    eval: { value: true, origin: LITGPT },
    ...readRows(reader, task),
    gradientCheckpointing: checkpointing(task, ranks, devices.origin),
    optim: optimizer.setting,
    maxGradNorm: readClipping(reader, task),
    lossImpl: { value: 'chunked_logits', origin: LITGPT },
    ownModules: { value: 'litgpt', origin: LITGPT },
    holdsLastLoss: { value: true, origin: LITGPT },
    ...(task === 'pretrain' ? { torchCompile: { value: true, origin: LITGPT } } : {}),
    ...readWorkers(reader, task),
    outputDir: reader.setting<string>(['out_dir'], toText, { value: TASKS[task].outDir, origin: LITGPT }),
    ...readResume(reader),
    ...adapter.spec,
  };
  const diagnostics: Diagnostic[] = [
    ...reader.diagnostics,
    ...adapter.diagnostics,
    ...optimizer.diagnostics,
    ...batch.diagnostics,
    ...strangers(reader),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  const launched = position.above.findLast((layer) => layer.reading.processes)?.reading.processes;
  return ok({
    spec,
    ...(config ? { files: [config.reference] } : {}),
    // Fabric starts the processes itself unless a launcher has.
    ...(launched?.distributed ? {} : { processes: devices }),
    ...(sharding ? { sharding } : {}),
    unread: [
      ...reader.unread,
      ...(config?.unread ?? []),
      ...leftOver(reader, (key) => idleOrUnknown(LITGPT_KEYS)(key.split('.')[0]!)),
      ...leftOut(reader, diagnostics),
    ],
    diagnostics,
    ...(start.script ? {} : { via: 'cli' as const }),
    resume: resumeOf(task),
    detail: { values, task, places: placesOf(name), inScript: start.script?.mentions('micro_batch_size') === true },
  });
}

const PRECISIONS: Readonly<Record<string, readonly [FloatDType, MixedPrecision]>> = {
  'bf16-true': ['bf16', 'no'],
  'bf16-mixed': ['fp32', 'bf16'],
  '16-true': ['fp16', 'no'],
  '16-mixed': ['fp32', 'fp16'],
  '32-true': ['fp32', 'no'],
  bf16: ['fp32', 'bf16'],
  '16': ['fp32', 'fp16'],
  '32': ['fp32', 'no'],
};

/** Without a word it is mixed, with weights in fp32, though the examples say `-true`. Source: litgpt/utils.py `get_default_supported_precision`. */
function readPrecision(reader: SettingReader): TrainingSpec {
  const given = reader.setting<string | null>(
    ['precision'],
    orNull((raw: FileValue) => toOneOf(...Object.keys(PRECISIONS))(String(raw))),
    { value: null, origin: LITGPT },
  );
  const [dtype, mixed] = PRECISIONS[given.value ?? 'bf16-mixed']!;
  return { dtype: { value: dtype, origin: given.origin }, mixedPrecision: { value: mixed, origin: given.origin } };
}

/** `auto` and −1 take every GPU. */
function readDevices(reader: SettingReader, task: Task, { visibleGpus }: Position) {
  const all = (raw: FileValue): boolean => raw === 'auto' || String(raw) === '-1';
  const toDevices: Convert<number | 'all'> = (raw) => (all(raw) ? { ok: true, value: 'all' } : toInteger(1)(raw));
  const preset = TASKS[task].devices;
  const devices = reader.setting<number | 'all'>(['devices'], toDevices, {
    value: preset === 'auto' ? 'all' : preset,
    origin: LITGPT,
  });
  const nodes = reader.setting<number>(['num_nodes'], toInteger(1), { value: 1, origin: LITGPT });
  const perNode = devices.value === 'all' ? (visibleGpus ?? null) : devices.value;
  return {
    nodes: nodes.value,
    perNode,
    distributed: perNode === null || perNode * (nodes.value ?? 1) > 1,
    origin: devices.origin,
  };
}

/** `train.global_batch_size` is for all ranks; accumulation is what is left of it. Source: litgpt/args.py. */
function readBatch(
  reader: SettingReader,
  task: Task,
  ranks: number | null,
): { readonly spec: TrainingSpec; readonly diagnostics: readonly Diagnostic[] } {
  const { globalBatchSize, microBatchSize } = TASKS[task];
  const whole = reader.setting<number>(['train.global_batch_size'], toInteger(1), {
    value: globalBatchSize,
    origin: LITGPT,
  });
  const micro = reader.setting<number>(['train.micro_batch_size'], toInteger(1), {
    value: microBatchSize,
    origin: LITGPT,
  });
  const share = whole.value === null || ranks === null ? null : Math.floor(whole.value / ranks);
  const steps = share === null || micro.value === null ? null : Math.floor(share / micro.value);
  const exact = steps === null || micro.value === null || ranks === null || steps * micro.value * ranks === whole.value;
  const accumulation: Setting<number> = {
    value: steps === null || steps < 1 ? null : steps,
    origin: whole.origin.kind === 'default' ? micro.origin : whole.origin,
  };
  const diagnostics: Diagnostic[] = [];
  if (steps !== null && (steps < 1 || !exact)) {
    const message =
      steps < 1
        ? `a global batch of ${whole.value} is less than ${micro.value} rows on each of ${ranks} GPUs, and litgpt stops`
        : `a global batch of ${whole.value} is rounded down to ${steps * micro.value! * ranks!}`;
    diagnostics.push(
      warning('odd-batch', message, {
        location: formatOrigin(whole.origin),
        help: `choose a global batch that ${micro.value! * ranks!} divides`,
      }),
    );
  }
  return {
    spec: {
      perDeviceTrainBatchSize: micro,
      gradientAccumulationSteps: accumulation,
      perDeviceEvalBatchSize: { value: micro.value, origin: { kind: 'derived', from: 'train.micro_batch_size' } },
    },
    diagnostics,
  };
}

/** Rows end at `train.max_seq_length`; without one they are as long as the data, or in pretraining the model's context. */
function readRows(reader: SettingReader, task: Task): TrainingSpec {
  const length = reader.setting<number | null>(['train.max_seq_length'], orNull(toInteger(1)), {
    value: null,
    origin: { kind: 'derived', from: 'train.max_seq_length, which is not set' },
  });
  return {
    maxLength: length as Setting<number>,
    packing: { value: task === 'pretrain', origin: LITGPT },
    attentionMask: { value: false, origin: LITGPT },
    attnImplementation: { value: 'sdpa', origin: LITGPT },
  };
}

/** Layers are recomputed exactly where finetuning takes several devices. Source: finetune/lora.py `parallelize_fn`, full.py. */
function checkpointing(task: Task, ranks: number | null, devices: Origin): Setting<GradientCheckpointing> {
  const enabled = task !== 'pretrain' && (ranks ?? 1) > 1;
  const value = { enabled, useReentrant: false, everyNLayers: 1, offload: false };
  return { value, origin: enabled ? devices : LITGPT };
}

function readSharding(task: Task, ranks: number | null, origin: Origin): Sharding | undefined {
  if (ranks === null) return { strategy: null, offload: [], origin };
  if (ranks === 1) return undefined;
  const strategy = task === 'lora' ? 'fsdp2' : task === 'pretrain' ? 'hsdp' : 'fsdp1';
  return { strategy, offload: [], origin };
}

/** Only pretraining clips. */
function readClipping(reader: SettingReader, task: Task): Setting<number> {
  const norm = reader.setting<number | null>(['train.max_norm'], orNull(toNumber), {
    value: TASKS[task].maxNorm,
    origin: LITGPT,
  });
  return { value: norm.value ?? 0, origin: norm.origin };
}

/**
 * A name or a class path with its arguments; pretraining asks for the fused one. A quantised base takes paged AdamW whatever
 * the class. Source: litgpt/utils.py `instantiate_bnb_optimizer`, `instantiate_torch_optimizer`.
 */
function readOptimizer(
  reader: SettingReader,
  task: Task,
  quantized: Origin | undefined,
): { readonly setting: Setting<string>; readonly diagnostics: readonly Diagnostic[] } {
  if (quantized) {
    reader.note('optimizer.class_path', 'optimizer.init_args');
    return { setting: { value: 'paged_adamw_32bit', origin: quantized }, diagnostics: [] };
  }
  const plain = task === 'pretrain' ? 'adamw_torch_fused' : 'adamw_torch';
  const key = reader.values.find('optimizer.class_path') ? 'optimizer.class_path' : 'optimizer';
  reader.note('optimizer.init_args', 'optimizer.init_args.fused');
  const read = readOptimizerClass(reader, key, 'optimizer.init_args.fused', { value: plain, origin: LITGPT });
  const { setting } = read;
  return setting.value === 'adamw_torch' ? { ...read, setting: { ...setting, value: plain } } : read;
}

function readWorkers(reader: SettingReader, task: Task): TrainingSpec {
  const keys = ['data.init_args.num_workers', 'data.num_workers'];
  const workers = reader.setting<number>(keys, toInteger(0), { value: TASKS[task].numWorkers, origin: LITGPT });
  return {
    dataloaderNumWorkers: workers,
    dataloaderPinMemory: { value: task === 'pretrain', origin: LITGPT },
  };
}

function readResume(reader: SettingReader): Pick<TrainingSpec, 'resumeFromCheckpoint'> {
  const given = reader.given(['resume'], (raw: FileValue) => ({ ok: true, value: raw }));
  return given && given.value !== false && given.value !== null
    ? { resumeFromCheckpoint: { value: String(given.value).replace(/\/lit_model\.pth$/, ''), origin: given.origin } }
    : {};
}

/** Checkpoints lie in `step-<n>` folders; only full runs write what going on takes. */
const resumeOf = (task: Task): ResumeSupport =>
  task === 'full' || task === 'pretrain'
    ? { kind: 'supported', how: '--resume auto, from the newest step in out_dir' }
    : { kind: 'unsupported', reason: `litgpt saves of a ${task} run only the adapter, and cannot go on from that` };

/** Keys that litgpt's own parser stops at. */
const strangers = (reader: SettingReader): readonly Diagnostic[] =>
  reader.values.all().flatMap((found) => {
    const [top, name] = found.key.split('.') as [string, string?];
    const inTrain = (top === 'train' || top === 'eval') && name !== undefined;
    if (LITGPT_KEYS.has(top) && (!inTrain || TRAIN_KEYS.has(name))) return [];
    return [
      warning('unknown-key', `litgpt has no ${found.key}, and stops at keys it does not know`, {
        location: formatOrigin(found.origin),
        help: 'take the key out',
      }),
    ];
  });
