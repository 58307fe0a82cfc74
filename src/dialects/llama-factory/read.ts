import { type Diagnostic, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type TrainingSpec } from '../../spec/index.ts';
import { readDeepSpeedStage } from '../accelerate-config/index.ts';
import type { ReadContext, ResumeSupport } from '../contract.ts';
import type { Position, Reading } from '../dialect.ts';
import { didYouMean } from '../did-you-mean.ts';
import { toText } from '../hf-argparser/convert.ts';
import { idleOrUnknown, leftOver, notEstimated } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import type { Values } from '../hf-argparser/values.ts';
import { autoBatch, ownOrEngine } from '../hf-trainer/read.ts';
import { readTrainerSharding, type TrainerSharding } from '../hf-trainer/sharding.ts';
import { launchedPrecision, readTrainingArguments } from '../hf-trainer/training-arguments.ts';
import { transformersIn } from '../hf-trainer/versions.ts';
import { readAdapter } from './adapter.ts';
import { readArguments } from './arguments.ts';
import type { LlamaFactoryStart } from './detect.ts';
import { FORMER, LLAMA_FACTORY_FIELDS } from './fields.ts';
import { readProcesses } from './processes.ts';
import {
  optimizerSwitch,
  readAttention,
  readCheckpointing,
  readEval,
  readLength,
  readLoss,
  readObjective,
  readOptimizer,
  readPacking,
  readStage,
  type Stage,
} from './settings.ts';
import { LLAMA_FACTORY_0_7, llamaFactoryIn } from './versions.ts';

export interface LlamaFactoryDetail {
  readonly values: Values;
  readonly stage: Stage | null;
  /** The switch that puts another optimizer in the place of `optim`. */
  readonly optimizerSwitch: string | undefined;
}

/** Reads a launch of LLaMA-Factory: `key=value` over the file over the defaults of its version. */
export function readLlamaFactory(
  start: LlamaFactoryStart,
  position: Position,
  context: ReadContext,
): Result<Reading<LlamaFactoryDetail>> {
  const args = readArguments(position.argv, start.argsFrom, context);
  if (!args.ok) return args;
  const { values, config } = args.value;
  const isOld = /train_bash\.py$/.test(position.target?.name ?? '');
  const version = isOld ? LLAMA_FACTORY_0_7 : llamaFactoryIn(context.versions);
  const transformers = transformersIn(context.versions);
  const reader = settingReader(values, true);
  const sharding = readTrainerSharding(reader, context);
  const launched = launchedPrecision(
    position.environment,
    position.above.map((layer) => layer.reading.spec),
  );
  const training = readTrainingArguments(
    reader,
    {
      origin: transformers.origin,
      optim: transformers.optim,
      heedsSyncEachBatch: transformers.heedsSyncEachBatch,
      gradientCheckpointing: false,
      fillsReentrant: false,
      bf16UnlessFp16: false,
      lossImpl: 'full',
      outputDir: 'trainer_output',
    },
    launched,
  );
  const strategies = [sharding, ...position.above.map((layer) => layer.reading)].map((each) => each.sharding?.strategy);
  const stage = readStage(reader, version);
  const objective = readObjective(reader, stage);
  const adapter = readAdapter(reader, version, strategies.includes('zero3') || stageOf(sharding) === 3);
  const optimizer = readOptimizer(reader, training.optim!, version);
  const attention = readAttention(reader, version);
  const model = reader.given(['model_name_or_path'], toText);
  const spec: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    ...training,
    objective: objective.setting,
    eval: readEval(reader, training.eval!, version),
    optim: optimizer.setting as NonNullable<TrainingSpec['optim']>,
    ...optimizer.spec,
    maxLength: readLength(reader, version),
    attnImplementation: attention,
    ...readPacking(reader, stage, attention, version),
    lossImpl: readLoss(reader, stage, training.lossImpl!, version),
    ...ownOrEngine(readCheckpointing(reader, version, strategies.includes('fsdp2')), sharding.gradientCheckpointing),
    ...adapter.spec,
  };
  const processes = readProcesses(
    start,
    position,
    sharding.engines.some((use) => use.dialect === 'deepspeed-config'),
  );
  const diagnostics: Diagnostic[] = [
    ...args.value.diagnostics,
    ...reader.diagnostics,
    ...objective.diagnostics,
    ...adapter.diagnostics,
    ...optimizer.diagnostics,
    ...sharding.diagnostics,
    ...processes.diagnostics,
    ...notEstimated(reader, NOT_ESTIMATED),
    ...autoBatch(reader),
    ...strangers(reader),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    ...(config ? { files: [config.reference] } : {}),
    ...(processes.processes ? { processes: processes.processes } : {}),
    ...(processes.env ? { env: processes.env } : {}),
    ...(sharding.sharding ? { sharding: sharding.sharding } : {}),
    engines: sharding.engines,
    unread: [
      ...reader.unread,
      ...(config?.unread ?? []),
      ...leftOver(reader, idleOrUnknown(LLAMA_FACTORY_FIELDS)),
      ...leftOut(reader, diagnostics),
      ...sharding.unread,
    ],
    diagnostics,
    ...(start.form === 'cli' ? { via: 'cli' as const } : {}),
    resume: resumeOf(spec, stage.value),
    detail: { values, stage: stage.value, optimizerSwitch: optimizerSwitch(reader) },
  });
}

/** The stage that the trainer's own DeepSpeed file names; the engine's dialect reads the rest of it. */
function stageOf({ engines }: TrainerSharding): number | undefined {
  const file = engines.find((use) => use.dialect === 'deepspeed-config')?.file;
  const read = file && readDeepSpeedStage(file.source);
  return read?.ok && typeof read.value.stage === 'number' ? read.value.stage : undefined;
}

/** Options that change what is held in ways nobody here counts. */
const NOT_ESTIMATED: Readonly<Record<string, string>> = {
  use_unsloth: 'Unsloth brings kernels and a loss of its own',
  shift_attn: 'shifted sparse attention changes what attention holds',
  mixture_of_depths: 'mixture of depths changes which tokens pass a layer',
  fp8: 'products are in FP8',
  resize_vocab: 'new tokens make embeddings and head larger',
  upcast_layernorm: 'norms in fp32 come on top',
  ref_model: 'a reference model of its own comes on top',
  use_llama_pro: 'only the expanded blocks are trained',
};

/** Its parser stops at a key it does not know; one that an older release had still counts. */
function strangers(reader: SettingReader): readonly Diagnostic[] {
  return reader.values.all().flatMap((found) => {
    const location = formatOrigin(found.origin);
    const former = FORMER[found.key];
    if (former) {
      const message = `${found.key} is called ${former.now} since LLaMA-Factory ${former.since}`;
      return [warning('former-name', message, { location, help: `write ${former.now}` })];
    }
    if (LLAMA_FACTORY_FIELDS.has(found.key)) return [];
    return [
      warning('unknown-key', `LLaMA-Factory has no ${found.key}, and stops at keys it does not know`, {
        location,
        help: didYouMean(found.key, [...LLAMA_FACTORY_FIELDS.keys()]),
      }),
    ];
  });
}

/** Source: hparams/parser.py `get_train_args`, `can_resume_from_checkpoint`. */
function resumeOf({ method }: TrainingSpec, stage: Stage | null): ResumeSupport {
  const whole = method?.value === 'full' || method?.value === null;
  if ((stage === 'rm' || stage === 'ppo') && whole) {
    return { kind: 'unsupported', reason: `stage ${stage} cannot go on from a checkpoint of the whole model` };
  }
  return { kind: 'supported', how: 'resume_from_checkpoint: DIR, or by itself from the last checkpoint in output_dir' };
}
