import { type Diagnostic, type FloatDType, fail, note, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Position, Reading } from '../dialect.ts';
import { orNull, toInteger, toNumber, toText } from '../hf-argparser/convert.ts';
import { leftOver, misspelt, notEstimated } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import type { Values } from '../hf-argparser/values.ts';
import { ownOrEngine } from '../hf-trainer/read.ts';
import { readAdapter } from './adapter.ts';
import { readArguments } from './arguments.ts';
import type { AxolotlStart } from './detect.ts';
import { AXOLOTL, AXOLOTL_KEYS } from './fields.ts';
import { readPrecision } from './precision.ts';
import { readProcesses } from './processes.ts';
import {
  isOn,
  readAttention,
  readBatch,
  readCheckpointing,
  readEval,
  readLength,
  readLoss,
  readObjective,
  readOptimizer,
  readPacking,
  readWorkers,
} from './settings.ts';
import { readSharding } from './sharding.ts';

export interface AxolotlDetail {
  readonly values: Values;
  readonly path: string;
  readonly plugins: readonly string[];
  /** Whether FSDP is set up in the config. */
  readonly fsdp: boolean;
}

/** Reads a launch of axolotl: options over the YAML over the defaults of its schema. */
export function readAxolotl(
  start: AxolotlStart,
  position: Position,
  context: ReadContext,
): Result<Reading<AxolotlDetail>> {
  const args = readArguments(start, position, context);
  if (!args.ok) return args;
  const { values, config, options } = args.value;
  const launched = readProcesses(start, options, position, context);
  if (!launched.ok) return launched;
  const reader = settingReader(values, true);
  const precision = readPrecision(reader);
  const sharding = readSharding(reader, context);
  const shards = sharding.sharding ?? launched.value.sharding;
  const fsdp = sharding.engines.some((use) => use.dialect === 'fsdp');
  const adapter = readAdapter(reader, precision.dtype!.value as FloatDType, fsdp);
  const objective = readObjective(reader);
  const attention = readAttention(reader);
  const checkpointing = readCheckpointing(reader, adapter.spec.method?.value !== 'full');
  const length = readLength(reader, objective.setting.value);
  const loss = readLoss(reader, objective.setting.value);
  const optimizer = readOptimizer(reader);
  const model = reader.given(['base_model'], toText);
  const folder = reader.setting<string>(['output_dir'], toText, { value: './model-out', origin: AXOLOTL });
  const kept = reader.given(['save_total_limit'], orNull(toInteger(1)));
  const clipping = reader.given(['max_grad_norm'], orNull(toNumber));
  const resume = reader.given(['resume_from_checkpoint'], orNull(toText));
  const plain: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    objective: objective.setting,
    ...precision,
    ...readBatch(reader),
    eval: readEval(reader),
    maxLength: length.setting,
    attnImplementation: attention.setting,
    ...readPacking(reader, attention.name),
    ...ownOrEngine(checkpointing.setting, sharding.gradientCheckpointing),
    optim: optimizer.setting,
    maxGradNorm: { value: clipping?.value ?? 1, origin: clipping?.origin ?? AXOLOTL },
    lossImpl: loss.setting,
    ...readWorkers(reader),
    outputDir: folder,
    saveTotalLimit: { value: kept?.value ?? 4, origin: kept?.origin ?? AXOLOTL },
    ...(resume ? { resumeFromCheckpoint: resume } : {}),
    ...adapter.spec,
  };
  const engine = sharding.engines.some((use) => use.dialect === 'deepspeed-config');
  const spec: TrainingSpec = { ...plain, ...fp32Embeddings(reader, plain, attention.name, fsdp || engine) };
  const diagnostics: Diagnostic[] = [
    ...reader.diagnostics,
    ...(launched.value.diagnostics ?? []),
    ...sharding.diagnostics,
    ...adapter.diagnostics,
    ...[objective, attention, checkpointing, length, loss, optimizer].flatMap((each) => each.diagnostics),
    ...notInTheEstimate(reader),
    ...ofTheCommand(options.own),
    ...misspelt(reader, [...AXOLOTL_KEYS], (key) => `axolotl has no ${key}, and passes over keys it does not know`),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    files: [config.reference, ...(launched.value.files ?? [])],
    ...processesOf(reader, launched.value),
    ...(launched.value.env ? { env: launched.value.env } : {}),
    ...(shards ? { sharding: shards } : {}),
    engines: [...sharding.engines, ...(launched.value.engines ?? [])],
    unread: [
      ...reader.unread,
      ...config.unread,
      ...leftOver(reader, reasonOf),
      ...leftOut(reader, diagnostics),
      ...sharding.unread,
    ],
    diagnostics,
    ...(start.form === 'cli' ? { via: 'cli' as const } : {}),
    resume: { kind: 'supported', how: 'resume_from_checkpoint: DIR, or auto_resume_from_checkpoints: true' },
    detail: { values, path: config.reference.source.path, plugins: pluginNames(reader), fsdp },
  });
}

/** Ray starts workers itself, whatever the launcher. */
function processesOf(reader: SettingReader, launched: Pick<Reading, 'processes'>): Pick<Reading, 'processes'> {
  if (!isOn(reader, 'use_ray')) return launched.processes ? { processes: launched.processes } : {};
  const workers = reader.setting<number>(['ray_num_workers'], toInteger(1), { value: 1, origin: AXOLOTL });
  return { processes: { nodes: 1, perNode: workers.value, distributed: true, origin: workers.origin } };
}

const pluginNames = (reader: SettingReader): readonly string[] => {
  const raw = reader.values.find('plugins')?.raw;
  return Array.isArray(raw) ? raw.map(String) : typeof raw === 'string' ? [raw] : [];
};

/**
 * Full training keeps embeddings, head and norms in fp32 unless the attention or the loss wants them back in 16 bits; FSDP does
 * not take two dtypes, and DeepSpeed casts the whole model. Source: loaders/model.py `_configure_embedding_dtypes`.
 */
function fp32Embeddings(
  reader: SettingReader,
  { method, dtype, lossImpl }: TrainingSpec,
  attention: string | undefined,
  sharded: boolean,
): Pick<TrainingSpec, 'embeddingsInFp32'> {
  const casts = attention !== undefined && attention !== 'sdpa' && attention !== 'eager';
  const cut = lossImpl?.value === 'fused' && pluginNames(reader).some((name) => name.endsWith('CutCrossEntropyPlugin'));
  if (method?.value !== 'full' || dtype?.value === 'fp32' || casts || cut || sharded) return {};
  return { embeddingsInFp32: { value: true, origin: { kind: 'derived', from: 'axolotl trains all weights' } } };
}

/** Keys that change what is held in ways nobody here counts. */
const NOT_ESTIMATED: Readonly<Record<string, string>> = {
  relora: 'ReLoRA merges adapters while it trains',
  fp8: 'products are in FP8',
  quantize_moe_experts: 'quantised experts are held in fewer bits than counted',
  use_ray: 'Ray starts the workers',
  peft_trainable_token_indices: 'trained tokens come on top',
  trainer_cls: 'a trainer of its own runs',
};

function notInTheEstimate(reader: SettingReader): readonly Diagnostic[] {
  const plain = notEstimated(reader, NOT_ESTIMATED);
  const tokens = reader.values.find('tokens', 'special_tokens');
  reader.note('tokens', 'neftune_noise_alpha', 'auto_find_batch_size', 'embeddings_skip_upcast');
  const added = reader.values.find('tokens');
  const search = reader.values.find('auto_find_batch_size');
  return [
    ...plain,
    ...(added && tokens
      ? [
          note('resized-embeddings', 'added tokens make embeddings and head a little larger', {
            location: formatOrigin(added.origin),
          }),
        ]
      : []),
    ...(search && isOn(reader, 'auto_find_batch_size')
      ? [
          warning(
            'auto-find-batch-size',
            'the trainer shrinks its own batch on out-of-memory, which changes the global batch',
            {
              location: formatOrigin(search.origin),
              help: 'turn auto_find_batch_size off and let snug keep the global batch',
            },
          ),
        ]
      : []),
  ];
}

function ofTheCommand(own: ReadonlyMap<string, { readonly index: number }>): readonly Diagnostic[] {
  const sweep = own.get('sweep');
  const cloud = own.get('cloud');
  return [
    ...(sweep
      ? [
          warning('sweep', 'a sweep starts many runs, and only the config itself is looked at', {
            location: `argv[${sweep.index}]`,
            help: 'check each setting of the sweep with --set',
          }),
        ]
      : []),
    ...(cloud
      ? [
          warning('elsewhere', 'the run starts on another machine than this one', {
            location: `argv[${cloud.index}]`,
            help: 'name its GPU with --gpu',
          }),
        ]
      : []),
  ];
}

function reasonOf(key: string): string {
  // Fused LoRA layers keep less than plain ones, which is what is counted.
  if (/^lora_\w+_kernel$/.test(key)) return 'not-estimated';
  if (AXOLOTL_KEYS.has(key)) return 'no-effect-on-memory';
  return key.includes('.') ? 'not-estimated' : 'unknown-key';
}
