import { type Diagnostic, error, type FloatDType, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext, ResumeSupport, Unread } from '../contract.ts';
import type { Position, Reading } from '../dialect.ts';
import type { Override } from '../dotted-values.ts';
import { orNull, toBoolean, toText } from '../hf-argparser/convert.ts';
import { leftOver, misspelt, notEstimated } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import type { Values } from '../hf-argparser/values.ts';
import { readOptimizerClass } from '../optimizer-class.ts';
import { badOption, processesOfOptions } from '../torchrun/index.ts';
import { readAdapter } from './adapter.ts';
import { readArguments } from './arguments.ts';
import type { TorchtuneStart } from './detect.ts';
import { BUILDER_KEYS, TORCHTUNE, TORCHTUNE_KEYS } from './keys.ts';
import { type Builder, parseBuilder } from './models.ts';
import { type Recipe, recipeOf } from './recipes.ts';
import {
  isOn,
  readBatch,
  readCheckpointing,
  readEval,
  readLoss,
  readModel,
  readPrecision,
  readRows,
  readSharding,
  readStep,
} from './settings.ts';
import { scanTune } from './tune.ts';

export interface TorchtuneDetail {
  readonly values: Values;
  readonly overrides: readonly Override[];
  readonly appendAt: number;
  readonly recipe: Recipe;
  readonly builder: Builder | undefined;
}

/** Saving is by whole epochs, and going on takes three keys of the checkpointer that depend on which were saved. */
const RESUME: ResumeSupport = {
  kind: 'unsupported',
  reason: 'torchtune goes on only from a whole epoch, by keys of its checkpointer that name the files of that epoch',
};

/** Reads a launch of torchtune: words of the command over the config, which holds all that a recipe needs. */
export function readTorchtune(
  start: TorchtuneStart,
  position: Position,
  context: ReadContext,
): Result<Reading<TorchtuneDetail>> {
  const launched = readLaunched(start, position);
  if (!launched.ok) return launched;
  const { recipe, argsFrom } = launched.value;
  const args = readArguments(argsFrom, position, context);
  if (!args.ok) return args;
  const { values, config, overrides, appendAt } = args.value;
  const reader = settingReader(values, true);
  reader.note('model', 'checkpointer', 'optimizer', 'loss', 'checkpointer.output_dir');
  const component = reader.given(['model._component_'], orNull(toText));
  const builder = component?.value ? parseBuilder(component.value) : undefined;
  const model = readModel(reader, builder && { parsed: builder, origin: component!.origin }, context);
  const precision = readPrecision(reader);
  const dtype = (precision.spec.dtype?.value ?? 'bf16') as FloatDType;
  const adapter = readAdapter(reader, builder, component?.origin ?? TORCHTUNE, dtype, recipe);
  const checkpointing = readCheckpointing(reader);
  const step = readStep(reader, recipe);
  const optimizer = readOptimizerClass(reader, 'optimizer._component_', 'optimizer.fused', {
    value: null,
    origin: { kind: 'derived', from: 'no optimizer in the config' },
  });
  const sharding = readSharding(reader, launched.value.distributed);
  const folder = reader.given(['checkpointer.output_dir', 'output_dir'], orNull(toText));
  const compile = isOn(reader, 'compile');
  reader.note('compile', 'output_dir');
  const spec: TrainingSpec = {
    ...model.spec,
    objective: { value: recipe.objective, origin: { kind: 'derived', from: `recipe ${recipe.name}` } },
    ...precision.spec,
    ...readBatch(reader),
    eval: readEval(reader),
    ...readRows(reader),
    ...checkpointing.spec,
    optim: optimizer.setting,
    ...step.spec,
    lossImpl: readLoss(reader, recipe),
    // No recipe switches the reduction off between micro batches.
    syncsEachMicroBatch: { value: true, origin: TORCHTUNE },
    ...(compile ? { torchCompile: { value: true, origin: compile.origin } } : {}),
    dataloaderNumWorkers: { value: 0, origin: TORCHTUNE },
    dataloaderPinMemory: { value: false, origin: TORCHTUNE },
    ...(folder?.value ? { outputDir: { value: folder.value, origin: folder.origin } } : {}),
    ...resumeSetting(reader),
    ...adapter.spec,
  };
  const diagnostics: Diagnostic[] = [
    ...reader.diagnostics,
    ...launched.value.diagnostics,
    ...[model, precision, checkpointing, step, adapter, optimizer, sharding].flatMap((each) => each.diagnostics),
    ...notInTheEstimate(reader, recipe, formatOrigin({ kind: 'argv', index: launched.value.recipeAt })),
    ...misspelt(
      reader,
      [...TORCHTUNE_KEYS],
      (top) => `no recipe of torchtune reads ${top}`,
      (key) => key.split('.')[0]!,
    ),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    ...(adapter.parts ? { parts: adapter.parts } : {}),
    ...(config ? { files: [config.reference] } : {}),
    ...(launched.value.processes ? { processes: launched.value.processes } : {}),
    ...(sharding.sharding ? { sharding: sharding.sharding } : {}),
    unread: [
      ...reader.unread,
      ...(config?.unread ?? []),
      ...launched.value.unread,
      ...leftOver(reader, reasonOf),
      ...leftOut(reader, diagnostics),
    ],
    diagnostics,
    ...(start.form === 'cli' ? { via: 'cli' as const } : {}),
    resume: RESUME,
    detail: { values, overrides, appendAt, recipe, builder },
  });
}

interface Launched extends Pick<Reading, 'processes'> {
  readonly recipe: Recipe;
  readonly recipeAt: number;
  readonly argsFrom: number;
  /** Whether the recipe shards the model. */
  readonly distributed: boolean;
  readonly unread: readonly Unread[];
  readonly diagnostics: readonly Diagnostic[];
}

/** Any option before the recipe makes torchrun start it; without one it runs in this very process. */
function readLaunched(start: TorchtuneStart, position: Position): Result<Launched> {
  const { argv, target, above } = position;
  if (start.form === 'script') {
    const recipe = recipeOf(target!.name)!;
    const launcher = above.findLast((layer) => layer.reading.processes)?.reading.processes;
    return ok({
      recipe,
      recipeAt: target!.index,
      argsFrom: target!.argsFrom,
      distributed: recipe.distributed && launcher?.distributed === true,
      unread: [],
      diagnostics: [],
    });
  }
  const { options, recipe: at } = scanTune(argv, start.optionsFrom);
  if (options.stuck) return fail(badOption(argv, options.stuck));
  const recipe = at === undefined ? undefined : recipeOf(argv[at]!);
  if (at === undefined || !recipe) {
    return fail(
      error('no-recipe', 'tune run is given no recipe', {
        location: `argv[${start.claim.from}]`,
        help: 'tune run lora_finetune_single_device --config my.yaml; tune ls lists them',
      }),
    );
  }
  const common = { recipe, recipeAt: at, argsFrom: at + 1 };
  const location = `argv[${at}]`;
  if (at === start.optionsFrom) {
    const lonely = recipe.distributed
      ? [
          warning('not-distributed', `${recipe.name} needs a launcher, and no option of torchrun stands before it`, {
            location,
            help: `tune run --nproc_per_node 2 ${recipe.name} …`,
          }),
        ]
      : [];
    const processes = {
      nodes: 1,
      perNode: 1,
      distributed: recipe.distributed,
      origin: { kind: 'derived', from: 'tune run without options of torchrun' } as const,
    };
    return ok({ ...common, processes, distributed: recipe.distributed, unread: [], diagnostics: lonely });
  }
  const launched = processesOfOptions(options, position);
  const single = recipe.name.endsWith('_single_device');
  return ok({
    ...common,
    ...launched,
    distributed: !single,
    diagnostics: [
      ...launched.diagnostics,
      ...(single
        ? [
            error('bad-option', `${recipe.name} runs in one process, and takes no options of torchrun`, {
              location,
              help: `take ${recipe.name.replace('_single_device', '_distributed')}, or take the options before it out`,
            }),
          ]
        : []),
    ],
  });
}

function resumeSetting(reader: SettingReader): Pick<TrainingSpec, 'resumeFromCheckpoint'> {
  const on = reader.given(['resume_from_checkpoint'], orNull(toBoolean));
  reader.note('checkpointer.recipe_checkpoint', 'checkpointer.adapter_checkpoint');
  const from = reader.given(['checkpointer.adapter_checkpoint', 'checkpointer.recipe_checkpoint'], orNull(toText));
  return on?.value
    ? { resumeFromCheckpoint: { value: from?.value ?? 'the last epoch in output_dir', origin: on.origin } }
    : {};
}

/** Keys that change what is held in ways nobody here counts. */
const NOT_ESTIMATED: Readonly<Record<string, string>> = {
  enable_fp8_training: 'products are in fp8',
  resize_token_embeddings: 'new tokens make embeddings and head a little larger',
  'model.decoder_trainable': 'which parts of a multimodal model are trained is not followed',
  'model.encoder_trainable': 'which parts of a multimodal model are trained is not followed',
  'model.fusion_trainable': 'which parts of a multimodal model are trained is not followed',
};

function notInTheEstimate(reader: SettingReader, recipe: Recipe, place: string): readonly Diagnostic[] {
  const keys = notEstimated(reader, NOT_ESTIMATED);
  return recipe.notEstimated
    ? [...keys, warning('not-estimated', `${recipe.name} ${recipe.notEstimated}`, { location: place })]
    : keys;
}

/** Only what builds the model can bear on memory without being known here. */
function reasonOf(key: string): string {
  const [top, name] = key.split('.') as [string, string?];
  if (!TORCHTUNE_KEYS.has(top)) return 'unknown-key';
  return top === 'model' && name !== undefined && !BUILDER_KEYS.has(name) ? 'unknown-key' : 'no-effect-on-memory';
}
