import { type Diagnostic, error, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Setting, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext, ResumeSupport } from '../contract.ts';
import type { Position, Reading } from '../dialect.ts';
import { orNull, toBoolean, toOneOf, toText } from '../hf-argparser/convert.ts';
import { type ParsedFlags, parseFlags } from '../hf-argparser/grammar.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { layerValues, type Values } from '../hf-argparser/values.ts';
import { appendPlace, readArgsFile, tokensFrom } from '../hf-trainer/arguments.ts';
import { ATTENTIONS, autoBatch, ownOrEngine, scriptResume, scriptSource } from '../hf-trainer/read.ts';
import { dataParallelTrap, readTrainerSharding } from '../hf-trainer/sharding.ts';
import { launchedPrecision, readTrainingArguments } from '../hf-trainer/training-arguments.ts';
import { type ConfigFile, readConfigFile } from './config-file.ts';
import { configFile, type TrlStart } from './detect.ts';
import { FORMER, trlGrammar } from './fields.ts';
import { readTrlLaunch } from './launch.ts';
import { OBJECTIVES, OFFLOADS, readLength, readLoss, readPacking, readRows } from './objective.ts';
import { readPeft } from './peft.ts';
import type { TrlVersion } from './versions.ts';

export interface TrlDetail {
  readonly values: Values;
  readonly start: TrlStart;
  readonly version: TrlVersion;
}

/** Reads a TRL trainer's arguments: command line over YAML over the defaults of `version`. */
export function readTrl(
  start: TrlStart,
  version: TrlVersion,
  position: Position,
  context: ReadContext,
): Result<Reading<TrlDetail>> {
  const { argv } = position;
  const at = configFile(argv, start.argsFrom);
  const config = at === undefined ? undefined : readConfigFile(argv, at, context);
  if (config && !config.ok) return config;
  const grammar = trlGrammar(start.command, start.form === 'script', start.script.mentions);
  // `--config FILE` is taken out before anything is parsed.
  const tokens = tokensFrom(argv, start.argsFrom).filter(
    ({ index }) => at === undefined || (index !== at && index !== at - 1),
  );
  const parsed = parseFlags(tokens, grammar);
  const argsFile = readArgsFile(start.script.path, grammar, context);
  const values = layerValues({
    argv,
    flags: parsed.flags,
    appendAt: Math.max(appendPlace(parsed, argv), (at ?? -1) + 1),
    ...(argsFile ? { argsFile } : {}),
    ...(config ? { file: config.value } : {}),
    ...(start.form === 'script' ? scriptSource(start.script) : {}),
  });
  const reader = settingReader(values, start.form !== 'script');
  const launch = start.form === 'cli' ? readTrlLaunch(reader, grammar, position, context) : undefined;
  if (launch && !launch.ok) return launch;
  const launched =
    launch?.value.spec.mixedPrecision ??
    launchedPrecision(
      position.environment,
      position.above.map((layer) => layer.reading.spec),
    );
  const sharding = readTrainerSharding(reader, context);
  const strategies = [
    sharding.sharding,
    launch?.value.sharding,
    ...position.above.map((layer) => layer.reading.sharding),
  ];
  const peft = readPeft(
    reader,
    version,
    strategies.some((each) => each?.strategy === 'zero3'),
    start.form === 'script' ? start.script : undefined,
  );
  const length = readLength(reader, start.command, version);
  const rows = readRows(reader, start.command, version, length.setting);
  const settings = readSettings(reader, start, version, launched);
  const several = manyGpus(start, position, reader, sharding.sharding !== undefined || launch !== undefined);
  const diagnostics: Diagnostic[] = [
    ...reader.diagnostics,
    ...optionProblems(parsed),
    ...(launch?.value.diagnostics ?? []),
    ...peft.diagnostics,
    ...length.diagnostics,
    ...sharding.diagnostics,
    ...autoBatch(reader),
    ...formerNames(reader, version),
    ...several.diagnostics,
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  const { processes } = { ...launch?.value, ...several };
  const shards = sharding.sharding ?? launch?.value.sharding ?? several.sharding;
  return ok({
    spec: {
      ...settings,
      ...ownOrEngine(settings.gradientCheckpointing!, sharding.gradientCheckpointing),
      maxLength: length.setting,
      ...rows,
      ...peft.spec,
    },
    ...(config
      ? { files: [config.value.reference, ...(launch?.value.files ?? [])], ...exported(config.value) }
      : { files: launch?.value.files ?? [] }),
    ...(processes ? { processes } : {}),
    ...(shards ? { sharding: shards } : {}),
    engines: [...sharding.engines, ...(launch?.value.engines ?? [])],
    unread: [
      ...reader.unread,
      ...(config?.value.unread ?? []),
      ...peft.unread,
      ...(launch?.value.unread ?? []),
      ...leftOut(reader, diagnostics),
      ...sharding.unread,
      ...leftOver(reader, idleOrUnknown(grammar.fields)).filter(({ key }) => !launch?.value.taken.includes(key)),
    ],
    diagnostics,
    ...(start.form === 'cli' ? { via: 'cli' as const } : {}),
    resume: resumeOf(start),
    detail: { values, start, version },
  });
}

function readSettings(
  reader: SettingReader,
  start: TrlStart,
  version: TrlVersion,
  launched: TrainingSpec['mixedPrecision'],
): TrainingSpec {
  const { command } = start;
  const { origin } = version;
  const defaults = {
    origin,
    gradientCheckpointing: version.gradientCheckpointing,
    fillsReentrant: version.reentrantOff,
    bf16UnlessFp16: version.bf16UnlessFp16,
    ...(version.transformers
      ? {
          optim: version.transformers.optim,
          useReentrant: !version.reentrantOff && version.transformers.useReentrant,
          heedsSyncEachBatch: version.transformers.heedsSyncEachBatch,
        }
      : {}),
    lossImpl: 'full',
    outputDir: 'trainer_output',
  } as const;
  const training = readTrainingArguments(reader, defaults, launched);
  const objective = OBJECTIVES[command];
  const model = reader.given(['model_name_or_path'], toText);
  const attention = reader.setting(['attn_implementation'], orNull(toOneOf(...ATTENTIONS)), { value: 'sdpa', origin });
  return {
    ...(model ? { modelNameOrPath: model } : {}),
    objective: { value: objective, origin: { kind: 'derived', from: `trl ${command}` } },
    attnImplementation: attention as Setting<'sdpa'>,
    ...training,
    ...readPacking(reader, command, version),
    lossImpl: readLoss(reader, command, version, training.lossImpl),
    gradientCheckpointing: withOffload(reader, command, training.gradientCheckpointing!),
  };
}

/** `activation_offloading` moves what the forward pass keeps; under checkpointing that is each layer's input. */
function withOffload(
  reader: SettingReader,
  command: TrlStart['command'],
  read: NonNullable<TrainingSpec['gradientCheckpointing']>,
): NonNullable<TrainingSpec['gradientCheckpointing']> {
  const offload = OFFLOADS.has(command) ? reader.given(['activation_offloading'], toBoolean) : undefined;
  return offload?.value && read.value ? { ...read, value: { ...read.value, offload: true } } : read;
}

/**
 * A plain process with several GPUs in sight: a model given by name is loaded with `device_map="auto"`, its layers spread
 * over the cards (trl/trainer/utils.py `create_model_from_path`); one that the script loads itself goes into nn.DataParallel.
 */
function manyGpus(
  start: TrlStart,
  position: Position,
  reader: SettingReader,
  decided: boolean,
): Partial<Pick<Reading, 'processes' | 'sharding'>> & { readonly diagnostics: readonly Diagnostic[] } {
  const launched = position.above.findLast((layer) => layer.reading.processes)?.reading.processes;
  const trap = decided ? undefined : dataParallelTrap(launched, position.visibleGpus, reader);
  if (!trap) return { diagnostics: [] };
  if (start.script.mentions('from_pretrained')) return { ...trap, diagnostics: [] };
  const { visibleGpus } = position;
  return {
    diagnostics: [
      warning(
        'layers-over-gpus',
        `one process spreads the layers over ${visibleGpus} GPUs, which is taken for one GPU here`,
        {
          location: `argv[${start.claim.from}]`,
          help: 'start it with accelerate launch for one process a GPU, or show it one GPU with CUDA_VISIBLE_DEVICES=0',
        },
      ),
    ],
  };
}

const optionProblems = (parsed: ParsedFlags): readonly Diagnostic[] =>
  parsed.problems.map((problem) =>
    error('bad-option', problem.message, { location: `argv[${problem.index}]`, help: problem.help }),
  );

const exported = (config: ConfigFile): Pick<Reading, 'env' | 'envFromFile'> =>
  Object.keys(config.env).length > 0 ? { env: config.env, envFromFile: ['env'] } : {};

/** Names that newer versions no longer take; their value still counts, since the spelling says which version is meant. */
function formerNames(reader: SettingReader, version: TrlVersion): readonly Diagnostic[] {
  if (version.origin.kind !== 'default' || version.origin.version.startsWith('0.')) return [];
  return Object.entries(FORMER).flatMap(([name, { now, since }]) => {
    const found = reader.values.find(name);
    if (!found || reader.values.find(now)) return [];
    return [
      warning(
        'former-name',
        `${name} is called ${now} since ${since}, and TRL ${(version.origin as { version: string }).version} does not take it`,
        {
          location: formatOrigin(found.origin),
          help: `write ${now}`,
        },
      ),
    ];
  });
}

/** TRL's own scripts call `train()` without the argument. */
function resumeOf(start: TrlStart): ResumeSupport {
  if (start.form === 'script') return scriptResume(start.script);
  return {
    kind: 'unsupported',
    reason: `trl ${start.command} does not hand resume_from_checkpoint to train(), so it starts over`,
  };
}
