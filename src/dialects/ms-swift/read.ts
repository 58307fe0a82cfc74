import { type Diagnostic, fail, ok, type Result, warning } from '../../core/index.ts';
import {
  type AttnImplementation,
  formatOrigin,
  type Objective,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Position, Processes, Reading, Sharding } from '../dialect.ts';
import { orNull, toBoolean, toInteger, toText } from '../hf-argparser/convert.ts';
import { idleOrUnknown, isOff, leftOver, misspelt, notEstimated } from '../hf-argparser/left-over.ts';
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
import { readAccumulation, readAttention, readEval, readObjective, readPrecision, readRows } from './settings.ts';
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
    ...notEstimated(reader, NOT_ESTIMATED, (raw) => !isOff(raw) && String(raw) !== '1'),
    ...autoBatch(reader),
    ...misspelt(reader, [...SWIFT_FIELDS.keys(), 'ENV'], (key) => `ms-swift is not known to have ${key}`),
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
      ...leftOver(reader, idleOrUnknown(SWIFT_FIELDS)),
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
