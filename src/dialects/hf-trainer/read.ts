import { type Diagnostic, error, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Objective, type Origin, type Setting, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext, ResumeSupport } from '../contract.ts';
import type { Claim, Position, Reading } from '../dialect.ts';
import { orNull, toBoolean, toFloatDType, toOneOf, toText } from '../hf-argparser/convert.ts';
import { type Grammar, parseFlags } from '../hf-argparser/grammar.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { layerValues, type Values } from '../hf-argparser/values.ts';
import { appendPlace, readArgsFile, readJsonArguments, tokensFrom } from './arguments.ts';
import { SCRIPT_FIELDS, TRAINING_ARGUMENTS_NEGATABLE } from './fields.ts';
import { readScriptLora } from './lora.ts';
import { readObjective } from './objective.ts';
import { readScript, type ScriptFacts } from './script.ts';
import { parsesArguments, readScriptValues } from './script-values.ts';
import { readMaxLength } from './sequence-length.ts';
import { dataParallelTrap, readTrainerSharding } from './sharding.ts';
import { launchedPrecision, readTrainingArguments } from './training-arguments.ts';
import { type TransformersVersion, transformersIn } from './versions.ts';

export interface HfDetail {
  readonly values: Values;
  readonly script: ScriptFacts;
}

const MODEL_KEYS = ['model_name_or_path', 'model_name', 'model_id', 'base_model', 'model', 'model_path'];
export const DTYPE_KEYS = ['dtype', 'torch_dtype', 'model_dtype'];
export const ATTENTION_KEYS = ['attn_implementation', 'attn_impl', '_attn_implementation'];
export const ATTENTIONS = ['eager', 'sdpa', 'flash_attention_2', 'flash_attention_3', 'flex_attention'] as const;

/** Reads the arguments of an HfArgumentParser script: command line over `X.args` over the one JSON file. */
export function readHfTrainer(claim: Claim, position: Position, context: ReadContext): Result<Reading<HfDetail>> {
  const script = readScript(position.target, context);
  const { argv } = position;
  const grammar: Grammar = {
    fields: SCRIPT_FIELDS,
    negatable: new Set(TRAINING_ARGUMENTS_NEGATABLE),
    open: true,
    declares: script.mentions,
  };
  const tokens = tokensFrom(argv, position.target?.argsFrom ?? claim.from);
  const parsed = parseFlags(tokens, grammar);
  const alone = tokens.length === 1 && tokens[0]!.text.endsWith('.json') ? tokens[0]! : undefined;
  const json = alone ? readJsonArguments(alone.text, alone.index, context) : undefined;
  if (json && !json.ok) return json;
  const argsFile = readArgsFile(script.path, grammar, context);
  const values = layerValues({
    argv,
    flags: parsed.flags,
    appendAt: appendPlace(parsed, argv),
    ...(argsFile ? { argsFile } : {}),
    ...(json ? { file: json.value } : {}),
    ...scriptSource(script),
  });
  const reader = settingReader(values, false);
  const launched = launchedPrecision(
    position.environment,
    position.above.map((layer) => layer.reading.spec),
  );
  const version = transformersIn(context.versions);
  const defaults = {
    origin: version.origin,
    optim: version.optim,
    useReentrant: version.useReentrant,
    heedsSyncEachBatch: version.heedsSyncEachBatch,
    gradientCheckpointing: false,
    fillsReentrant: false,
    bf16UnlessFp16: false,
    lossImpl: 'full',
    outputDir: 'trainer_output',
  } as const;
  const training = readTrainingArguments(reader, defaults, launched);
  const lora = readScriptLora(reader, script);
  const objective = readObjective(script, position.target?.name);
  const length = readMaxLength(reader, script, context, objective.value);
  const sharding = readTrainerSharding(reader, context);
  const trap = sharding.sharding
    ? undefined
    : dataParallelTrap(
        position.above.findLast((layer) => layer.reading.processes)?.reading.processes,
        position.visibleGpus,
        reader,
      );
  const spec: TrainingSpec = {
    ...modelSetting(reader),
    objective,
    dtype: readDtype(reader, script, version),
    maxLength: length.setting,
    ...(length.target ? { maxTargetLength: length.target } : {}),
    ...paddedRows(objective),
    attnImplementation: readAttention(reader, script, version.origin),
    ...training,
    ...ownOrEngine(training.gradientCheckpointing!, sharding.gradientCheckpointing),
    ...lora.spec,
  };
  const diagnostics: Diagnostic[] = [
    ...reader.diagnostics,
    ...parsed.problems.map((problem) =>
      error('bad-option', problem.message, { location: `argv[${problem.index}]`, help: problem.help }),
    ),
    ...lora.diagnostics,
    ...length.diagnostics,
    ...sharding.diagnostics,
    ...autoBatch(reader),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    ...(json ? { files: [json.value.reference] } : {}),
    ...(sharding.sharding ? { sharding: sharding.sharding } : {}),
    ...(trap ?? {}),
    engines: sharding.engines,
    unread: [
      ...reader.unread,
      ...leftOver(reader, idleOrUnknown(SCRIPT_FIELDS)),
      ...leftOut(reader, diagnostics),
      ...sharding.unread,
    ],
    diagnostics,
    resume: scriptResume(script),
    detail: { values, script },
  });
}

function modelSetting(reader: SettingReader): Pick<TrainingSpec, 'modelNameOrPath'> {
  const model = reader.given(MODEL_KEYS, toText);
  return model ? { modelNameOrPath: model } : {};
}

/** `dtype="…"` of the one from_pretrained call counts where no flag says it; without either, the checkpoint's own. */
function readDtype(
  reader: SettingReader,
  script: ScriptFacts,
  version: TransformersVersion,
): NonNullable<TrainingSpec['dtype']> {
  const otherwise = scriptDtype(script, version);
  const flag = reader.setting(DTYPE_KEYS, orNull(toFloatDType), otherwise);
  return flag.value === null && flag.origin.kind !== 'argv' ? otherwise : (flag as Setting<'auto'>);
}

/** The dtype that the text's one `dtype=…` names, else the checkpoint's own. */
export function scriptDtype(
  script: ScriptFacts,
  version: TransformersVersion = transformersIn(undefined),
): NonNullable<TrainingSpec['dtype']> {
  const written = script.only(
    /(?<!compute_)(?:torch_)?dtype["']?\s*[=:]\s*["']?(?:torch\.)?(bfloat16|float16|float32|auto)\b/,
  );
  const dtype = written && toFloatDType(written.groups[0]!);
  return written && dtype?.ok
    ? { value: dtype.value, origin: { kind: 'file', path: script.path!, line: written.line } as const }
    : { value: version.dtype, origin: version.origin };
}

function readAttention(
  reader: SettingReader,
  script: ScriptFacts,
  origin: Origin,
): NonNullable<TrainingSpec['attnImplementation']> {
  const written = script.only(/attn_implementation\s*=\s*["'](\w+)["']/);
  const named = written && toOneOf(...ATTENTIONS)(written.groups[0]!);
  const otherwise =
    written && named?.ok
      ? { value: named.value, origin: { kind: 'file', path: script.path!, line: written.line } as const }
      : { value: 'sdpa' as const, origin };
  return reader.setting(ATTENTION_KEYS, toOneOf(...ATTENTIONS), otherwise);
}

/** FSDP's activation checkpointing where the trainer's own is off. */
export const ownOrEngine = (
  own: NonNullable<TrainingSpec['gradientCheckpointing']>,
  engine: TrainingSpec['gradientCheckpointing'],
): Pick<TrainingSpec, 'gradientCheckpointing'> => ({
  gradientCheckpointing: own.value?.enabled || !engine ? own : engine,
});

/** Two searchers must not nest: the trainer's own batch search shrinks the batch without touching the accumulation. */
export function autoBatch(reader: SettingReader): readonly Diagnostic[] {
  const found = reader.given(['auto_find_batch_size'], toBoolean);
  if (!found?.value) return [];
  return [
    warning(
      'auto-find-batch-size',
      'the trainer shrinks its own batch on out-of-memory, which changes the global batch',
      {
        location: formatOrigin(found.origin),
        help: 'turn auto_find_batch_size off and let snug keep the global batch',
      },
    ),
  ];
}

/** What the script's text says, as the last of the sources of values. */
export function scriptSource(script: ScriptFacts): {
  readonly script?: NonNullable<ReturnType<typeof readScriptValues>>;
} {
  const values = readScriptValues(script);
  return values ? { script: values } : {};
}

/** `train(resume_from_checkpoint=True)`: from the last checkpoint of the output folder, whatever the command says. */
export const resumesByItself = (script: ScriptFacts): boolean =>
  /\.train\(\s*resume_from_checkpoint\s*=\s*True\b/.test(script.text ?? '');

/** Trainer itself ignores the field: the script must hand it to `train()`. */
export function scriptResume(script: ScriptFacts): ResumeSupport {
  if (resumesByItself(script))
    return { kind: 'supported', how: 'by itself from the last checkpoint in its output folder' };
  if (script.text === undefined) {
    const reason = 'the script cannot be read here, so whether it hands resume_from_checkpoint to train() is not known';
    return { kind: 'unsupported', reason };
  }
  if (parsesArguments(script) === false) return { kind: 'unsupported', reason: `${script.path} takes no flags` };
  if (script.mentions('resume_from_checkpoint')) return { kind: 'supported', how: '--resume_from_checkpoint DIR' };
  return { kind: 'unsupported', reason: 'the script does not hand resume_from_checkpoint to train()' };
}

/** Classifiers and encoder-decoders get their rows padded, with a mask that says where. */
function paddedRows(objective: Setting<Objective>): TrainingSpec {
  if (objective.value !== 'classification' && objective.value !== 'seq2seq') return {};
  return { attentionMask: { value: true, origin: { kind: 'derived', from: `objective ${objective.value}` } } };
}
