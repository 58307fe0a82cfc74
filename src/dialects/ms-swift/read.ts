import { type Diagnostic, fail, ok, type Result, warning } from '../../core/index.ts';
import {
  type AttnImplementation,
  formatOrigin,
  type MixedPrecision,
  type Objective,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { ReadContext, Unread } from '../contract.ts';
import type { FileValue, Position, Processes, Reading, Sharding } from '../dialect.ts';
import { didYouMean } from '../did-you-mean.ts';
import { orNull, toBoolean, toInteger, toNumber, toText } from '../hf-argparser/convert.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import type { Values } from '../hf-argparser/values.ts';
import { TRANSFORMERS } from '../hf-trainer/fields.ts';
import { autoBatch, ownOrEngine } from '../hf-trainer/read.ts';
import { readTrainerSharding, type TrainerSharding } from '../hf-trainer/sharding.ts';
import { readTrainingArguments } from '../hf-trainer/training-arguments.ts';
import { readAdapter, readTorchDtype } from './adapter.ts';
import { readArguments } from './arguments.ts';
import type { SwiftStart } from './detect.ts';
import { SWIFT_FIELDS } from './fields.ts';
import { type SwiftVersion, versionOf } from './versions.ts';

export interface SwiftDetail {
  readonly values: Values;
  readonly version: SwiftVersion;
  readonly objective: Objective | null;
}

export const MICRO_KEYS = ['per_device_train_batch_size', 'batch_size'];
export const EVAL_KEYS = ['per_device_eval_batch_size', 'eval_batch_size'];

/** Reads a launch of ms-swift: flags over the file over the defaults of the release whose words it uses. */
export function readSwift(start: SwiftStart, position: Position, context: ReadContext): Result<Reading<SwiftDetail>> {
  const args = readArguments(start, position, context);
  if (!args.ok) return args;
  const { values, config, env } = args.value;
  const reader = settingReader(values, true);
  reader.note('ENV');
  const version = versionOf((key) => values.find(key) !== undefined);
  const { origin } = version;
  const processes = readProcesses(start, position, env);
  const ranks = processes.value ? (processes.value.nodes ?? 1) * (processes.value.perNode ?? 1) : ranksAbove(position);
  const loaded = readTorchDtype(reader, version);
  const builtin = builtinEngine(reader);
  const sharding: TrainerSharding = builtin ?? readTrainerSharding(reader, context);
  const training = readTrainingArguments(
    reader,
    {
      origin: { kind: 'default', ...TRANSFORMERS },
      gradientCheckpointing: true,
      fillsReentrant: false,
      bf16UnlessFp16: false,
      lossImpl: 'full',
      outputDir: null,
    },
    undefined,
  );
  const adapter = readAdapter(reader, version, loaded.value);
  const micro = reader.setting<number>(MICRO_KEYS, toInteger(1), { value: 1, origin });
  const objective = readObjective(reader, start, version);
  const attention = readAttention(reader, version);
  const model = reader.given(['model', 'model_id_or_path'], toText);
  const kind = reader.given(['model_type'], orNull(toText));
  const workers = reader.given(['dataloader_num_workers'], orNull(toInteger(0)));
  const said = reader.values.find('gradient_checkpointing', 'gradient_checkpointing_kwargs');
  const checkpointing = said ? training.gradientCheckpointing! : { ...training.gradientCheckpointing!, origin };
  const spec: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    ...training,
    objective: objective.setting,
    dtype: loaded.value === null ? { value: 'auto', origin: loaded.origin } : loaded,
    mixedPrecision: readPrecision(reader, loaded, version),
    perDeviceTrainBatchSize: micro,
    perDeviceEvalBatchSize: reader.setting<number>(EVAL_KEYS, toInteger(1), { value: 1, origin }),
    gradientAccumulationSteps: readAccumulation(reader, micro.value, ranks, version),
    eval: readEval(reader, training.eval!, version),
    optim: training.optim!.origin.kind === 'default' ? { value: version.optim, origin } : training.optim!,
    ...readRows(reader, version, objective.setting.value),
    attnImplementation: attention,
    dataloaderNumWorkers: { value: workers?.value ?? 1, origin: workers?.origin ?? origin },
    ...ownOrEngine(checkpointing, sharding.gradientCheckpointing),
    ...adapter.spec,
  };
  const diagnostics: Diagnostic[] = [
    ...args.value.diagnostics,
    ...reader.diagnostics,
    ...objective.diagnostics,
    ...adapter.diagnostics,
    ...sharding.diagnostics,
    ...processes.diagnostics,
    ...needsFlash(reader, attention),
    ...(!model && kind
      ? [
          warning('unknown-model', `model_type ${kind.value} names a model of release 2 by a word of its own`, {
            location: formatOrigin(kind.origin),
            help: 'name the model with --model_id_or_path, or --set model_name_or_path=ID',
          }),
        ]
      : []),
    ...notInTheEstimate(reader),
    ...autoBatch(reader),
    ...strangers(reader),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    ...(config ? { files: [config.reference] } : {}),
    ...(processes.value ? { processes: processes.value } : {}),
    ...(sharding.sharding ? { sharding: sharding.sharding } : {}),
    engines: sharding.engines,
    ...(Object.keys(env).length > 0 ? { env, envFromFile: ['ENV'] } : {}),
    unread: [
      ...reader.unread,
      ...(config?.unread ?? []),
      ...leftOver(reader),
      ...leftOut(reader, diagnostics),
      ...sharding.unread,
    ],
    diagnostics,
    ...(start.form === 'cli' ? { via: 'cli' as const } : {}),
    resume: { kind: 'supported', how: '--resume_from_checkpoint DIR' },
    detail: { values, version, objective: objective.setting.value },
  });
}

const count = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d*$/.test(text) ? Number(text) : undefined;

/** torchrun where NPROC_PER_NODE or NNODES is set; else one process, which spreads the layers over all GPUs it sees. */
function readProcesses(
  start: SwiftStart,
  position: Position,
  env: Readonly<Record<string, string>>,
): { readonly value?: Processes; readonly diagnostics: readonly Diagnostic[] } {
  const say = (name: string): string | undefined => position.environment[name] ?? env[name];
  const launched = position.above.findLast((layer) => layer.reading.processes)?.reading.processes;
  const torchrun = start.form === 'cli' && (say('NPROC_PER_NODE') !== undefined || say('NNODES') !== undefined);
  if (torchrun) {
    const name = say('NPROC_PER_NODE') === undefined ? 'NNODES' : 'NPROC_PER_NODE';
    const text = say('NPROC_PER_NODE');
    const perNode = text === undefined ? 1 : /^(?:gpu|auto)$/.test(text) ? position.visibleGpus : count(text);
    return {
      value: {
        nodes: count(say('NNODES')) ?? 1,
        perNode: perNode ?? null,
        distributed: true,
        origin: { kind: 'env', name },
      },
      diagnostics: [],
    };
  }
  if (launched?.distributed || (position.visibleGpus ?? 1) < 2) return { diagnostics: [] };
  return {
    diagnostics: [
      warning(
        'layers-over-gpus',
        `one process spreads the layers over ${position.visibleGpus} GPUs, which is taken for one GPU here`,
        {
          location: `argv[${start.claim.from}]`,
          help: `put NPROC_PER_NODE=${position.visibleGpus} before the command, or CUDA_VISIBLE_DEVICES=0`,
        },
      ),
    ],
  };
}

function ranksAbove({ above }: Position): number {
  const launched = above.findLast((layer) => layer.reading.processes)?.reading.processes;
  return launched?.distributed ? (launched.nodes ?? 1) * (launched.perNode ?? 1) : 1;
}

/** Without a word 16 rows make a step, rounded up. Source: trainers/arguments.py. */
function readAccumulation(
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
function readPrecision(
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

function readObjective(
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
function readEval(reader: SettingReader, read: Setting<boolean>, version: SwiftVersion): Setting<boolean> {
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
function readRows(reader: SettingReader, version: SwiftVersion, objective: Objective | null): TrainingSpec {
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

function readAttention(reader: SettingReader, { origin }: SwiftVersion): Setting<AttnImplementation> {
  const older = reader.given(['use_flash_attn'], orNull(toBoolean));
  const given = reader.given(['attn_impl'], orNull(toText));
  if (given?.value) return { value: ATTENTIONS[given.value] ?? null, origin: given.origin };
  if (older?.value) return { value: 'flash_attention_2', origin: older.origin };
  return { value: 'sdpa', origin: older?.origin ?? origin };
}

function needsFlash(reader: SettingReader, attention: Setting<AttnImplementation>): readonly Diagnostic[] {
  const on = ['packing', 'padding_free'].map((key) => reader.given([key], toBoolean)).find((each) => each?.value);
  if (!on || attention.value === null || attention.value.startsWith('flash_')) return [];
  return [
    warning('needs-flash', 'packing and padding_free stop without flash attention', {
      location: formatOrigin(on.origin),
      help: 'write --attn_impl flash_attn',
    }),
  ];
}

const BUILTIN = /^zero([0-3])(_offload)?$/;

/** `zero2`, `zero3_offload`, `fsdp2`: configs that come with the tool. Source: swift/config. */
function builtinEngine(reader: SettingReader): TrainerSharding | undefined {
  const deepspeed = reader.values.find('deepspeed');
  const [, stage, offload] =
    BUILTIN.exec(
      String(deepspeed?.raw ?? '')
        .replace(/^default-/, '')
        .replace('-', '_'),
    ) ?? [];
  if (deepspeed && stage !== undefined) {
    reader.note('deepspeed');
    const strategy: Sharding['strategy'] = stage === '0' ? 'ddp' : (`zero${stage}` as 'zero1');
    return {
      sharding: {
        strategy,
        offload: !offload ? [] : stage === '3' ? ['optimizer', 'parameters'] : ['optimizer'],
        origin: deepspeed.origin,
      },
      engines: [{ dialect: 'deepspeed-config', origin: deepspeed.origin }],
      unread: [],
      diagnostics: [],
    };
  }
  const fsdp = reader.values.find('fsdp');
  if (fsdp?.raw !== 'fsdp2') return undefined;
  reader.note('fsdp');
  return {
    sharding: { strategy: 'fsdp2', offload: [], origin: fsdp.origin },
    gradientCheckpointing: {
      value: { enabled: true, useReentrant: false, everyNLayers: 1, offload: false },
      origin: fsdp.origin,
    },
    engines: [{ dialect: 'fsdp', origin: fsdp.origin }],
    unread: [],
    diagnostics: [],
  };
}

/** Keys that change what is held in ways nobody here counts. */
const NOT_ESTIMATED: Readonly<Record<string, string>> = {
  use_galore: 'GaLore of ms-swift has settings of its own',
  sequence_parallel_size: 'rows are shared out between GPUs',
  freeze_parameters_ratio: 'a part of the weights is frozen',
  freeze_parameters: 'a part of the weights is frozen',
  lisa_activated_layers: 'a part of the layers is trained at a time',
  optimizer: 'an optimizer of its own takes the place of optim',
  new_special_tokens: 'new tokens make embeddings and head larger',
  deepspeed_autotp_size: 'products are shared out between GPUs',
};

function notInTheEstimate(reader: SettingReader): readonly Diagnostic[] {
  return Object.entries(NOT_ESTIMATED).flatMap(([key, why]) => {
    const found = reader.values.find(key);
    reader.note(key);
    if (!found || /^(?:false|none|null|0|0\.0?|1|\[\]|)$/i.test(String(found.raw))) return [];
    return [
      warning('not-estimated', `${key}: ${why}, which the estimate leaves out`, {
        location: formatOrigin(found.origin),
      }),
    ];
  });
}

const strangers = (reader: SettingReader): readonly Diagnostic[] =>
  reader.values.all().flatMap((found) => {
    if (SWIFT_FIELDS.has(found.key) || found.key === 'ENV') return [];
    const help = didYouMean(found.key, [...SWIFT_FIELDS.keys()]);
    if (!help.startsWith('did you mean')) return [];
    return [
      warning('unknown-key', `ms-swift is not known to have ${found.key}`, {
        location: formatOrigin(found.origin),
        help,
      }),
    ];
  });

const leftOver = (reader: SettingReader): readonly Unread[] =>
  reader.values
    .all()
    .filter((found) => !reader.noted.has(found.key))
    .map((found) => ({
      key: found.key,
      origin: found.origin,
      reason: SWIFT_FIELDS.has(found.key) ? 'no-effect-on-memory' : 'unknown-key',
    }));
