import { type Diagnostic, error, fail, ok, type Result, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type LossImpl,
  type Objective,
  type Setting,
  type Strategy,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { Position, Reading, Sharding } from '../dialect.ts';
import { accumulationOf, type GlobalBatch, worldSize } from '../global-batch.ts';
import { type Convert, orNull, toBoolean, toInteger, toNumber, toOneOf, toText } from '../hf-argparser/convert.ts';
import { type FlagLaunch, readFlags } from '../hf-argparser/flag-launch.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { readAdapter } from './adapter.ts';
import type { OpenRlhfStart, Task } from './detect.ts';
import { IDLE_FIELDS, NAMES, type Name, OPENRLHF_GRAMMAR } from './fields.ts';
import { type OpenRlhfVersion, versionOf } from './versions.ts';

export interface OpenRlhfDetail {
  readonly launch: FlagLaunch;
  readonly version: OpenRlhfVersion;
  readonly batch: GlobalBatch | undefined;
}

const OBJECTIVES: Readonly<Record<Task, Objective | null>> = {
  sft: 'sft',
  dpo: 'dpo',
  rm: 'reward',
  kto: 'kto',
  kd: null,
  prm: null,
  ppo_ray: null,
};

/** Reads the flags of one of OpenRLHF's training modules. */
export function readOpenRlhf(start: OpenRlhfStart, position: Position): Result<Reading<OpenRlhfDetail>> {
  const launch = readFlags(position.argv, start.argsFrom, OPENRLHF_GRAMMAR);
  const { values } = launch;
  const version = versionOf(values);
  const reader = settingReader(values, true);
  const { origin } = version;
  const field = <T>(name: Name, convert: Convert<T>, value: T): Setting<T> =>
    reader.setting<T>(NAMES[name], convert, { value, origin });
  const isOn = (name: Name): boolean => field(name, toBoolean, false).value === true;

  const micro = field('micro', toInteger(1), 8);
  const rows = field('batch', toInteger(1), 128);
  const world = worldSize(position);
  const [ring, tensor] = [field('ring', toInteger(1), 1), field('tensor', toInteger(1), 1)];
  const batch: GlobalBatch | undefined =
    world && rows.value && ring.value && tensor.value
      ? { rows: rows.value, replicas: world / (ring.value * tensor.value) }
      : undefined;
  const dtype = readDtype(reader, version);
  const adapter = readAdapter(reader, version);
  const model = reader.given(NAMES.model, toText);
  const output = field('output', toText, './ckpt');
  const evalData = reader.given(NAMES.evalData, orNull(toText));
  const objective = readObjective(reader, start);
  const packing = field('packing', toBoolean, false);
  const spec: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    objective,
    ...adapter.spec,
    dtype,
    mixedPrecision: dtype,
    perDeviceTrainBatchSize: micro,
    perDeviceEvalBatchSize: { value: micro.value, origin: { kind: 'derived', from: 'the training micro batch' } },
    eval: { value: Boolean(evalData?.value), origin: evalData?.origin ?? origin },
    gradientAccumulationSteps: accumulationOf(batch, micro.value, Math.floor, rows.origin),
    maxLength: field('length', toInteger(1), start.task === 'sft' || start.task === 'kd' ? 2048 : 512),
    paddingFree: packing,
    attentionMask: { value: packing.value !== true, origin: packing.origin },
    attnImplementation: readAttention(reader, version),
    gradientCheckpointing: {
      value: {
        enabled: isOn('checkpointing'),
        useReentrant: isOn('reentrant'),
        everyNLayers: 1,
        offload: false,
      },
      origin: field('checkpointing', toBoolean, false).origin,
    },
    optim: readOptimizer(reader, version),
    maxGradNorm: field('maxNorm', toNumber, 1),
    // Its trainers take the loss from the logits themselves, so that Liger's fused loss is never used.
    lossImpl: { value: 'full' satisfies LossImpl, origin },
    ...(isOn('liger')
      ? { fusedKernels: { value: ['norm', 'rotary', 'gate'], origin: field('liger', toBoolean, false).origin } }
      : {}),
    dataloaderNumWorkers: field('workers', toInteger(0), 0),
    outputDir: output as Setting<string>,
  };
  const diagnostics = [
    ...launch.problems,
    ...reader.diagnostics,
    ...adapter.diagnostics,
    ...notEstimated(reader, objective),
    ...(spec.gradientAccumulationSteps!.value === null && batch ? [tooSmall(batch, micro.value!, rows)] : []),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    sharding: readSharding(reader, version),
    unread: [...reader.unread, ...leftOver(reader, idleOrUnknown(IDLE_FIELDS))],
    diagnostics,
    resume: {
      kind: 'unsupported',
      reason: 'OpenRLHF goes on only from checkpoints of its own, in --ckpt.path with --ckpt.load_enable',
    },
    detail: { launch, version, batch },
  });
}

function readObjective(reader: SettingReader, { task, claim }: OpenRlhfStart): Setting<Objective> {
  const pretrain = reader.given(NAMES.pretrainMode, toBoolean);
  if (task === 'sft' && pretrain?.value) return { value: 'clm', origin: pretrain.origin };
  return { value: OBJECTIVES[task], origin: { kind: 'argv', index: claim.from } };
}

function readDtype(reader: SettingReader, version: OpenRlhfVersion): Setting<'bf16' | 'fp16'> {
  const switched = reader.given(['bf16'], toBoolean);
  const otherwise: Setting<'bf16' | 'fp16'> = switched?.value
    ? { value: 'bf16', origin: switched.origin }
    : { value: version.dtype, origin: version.origin };
  return reader.setting<'bf16' | 'fp16'>(NAMES.paramDtype, toOneOf('bf16', 'fp16'), otherwise);
}

const ATTENTIONS = ['eager', 'sdpa', 'flash_attention_2', 'flash_attention_3', 'flex_attention'] as const;

function readAttention(
  reader: SettingReader,
  version: OpenRlhfVersion,
): NonNullable<TrainingSpec['attnImplementation']> {
  const switched = reader.given(['flash_attn'], toBoolean);
  const packing = reader.given(NAMES.packing, toBoolean);
  const given = reader.given(NAMES.attention, toText);
  // Rows are packed only with a flash kernel, whatever is asked for.
  const flash = switched?.value ? switched : packing?.value && !given?.value.includes('flash') ? packing : undefined;
  if (flash) return { value: 'flash_attention_2', origin: flash.origin };
  if (!given) return { value: version.attention, origin: version.origin };
  // Kernels of the hub (`kernels-community/vllm-flash-attn3`) are named by their repository.
  const known = ATTENTIONS.find((name) => name === given.value);
  const hub = /flash-attn3/.test(given.value) ? 'flash_attention_3' : /flash/.test(given.value) ? ATTENTIONS[2] : null;
  return { value: known ?? hub, origin: given.origin };
}

/** DeepSpeed's fused Adam has the states of AdamW. */
function readOptimizer(reader: SettingReader, version: OpenRlhfVersion): Setting<string> {
  const given = reader.setting(NAMES.optimizer, toOneOf('adam', 'muon'), { value: 'adam', origin: version.origin });
  return { value: given.value === 'adam' ? 'adamw_torch_fused' : null, origin: given.origin };
}

const STRATEGIES: readonly Strategy[] = ['ddp', 'zero1', 'zero2', 'zero3'];

function readSharding(reader: SettingReader, { origin }: OpenRlhfVersion): Sharding {
  const stage = reader.setting<number>(NAMES.stage, toInteger(0), { value: 2, origin });
  const offload = reader.given(NAMES.adamOffload, toBoolean);
  return {
    strategy: STRATEGIES[stage.value ?? Number.NaN] ?? null,
    offload: offload?.value ? ['optimizer'] : [],
    origin: stage.origin.kind === 'default' && offload ? offload.origin : stage.origin,
  };
}

const SPLITS: Readonly<Partial<Record<Name, string>>> = {
  ring: 'ring attention splits every row over several GPUs',
  tensor: 'tensor parallelism splits every layer over several GPUs',
};

function notEstimated(reader: SettingReader, objective: Setting<Objective>): readonly Diagnostic[] {
  const split = Object.entries(SPLITS).flatMap(([name, why]) => {
    const size = reader.given(NAMES[name as Name], toInteger(1));
    if (!size || size.value === 1) return [];
    return [warning('not-estimated', `${why}, which the estimate leaves out`, { location: formatOrigin(size.origin) })];
  });
  const adapters = reader.given(NAMES.rank, toInteger(0));
  const twice = objective.value === 'dpo' && adapters?.value;
  return [
    ...split,
    ...(twice
      ? [
          warning('not-estimated', 'OpenRLHF loads a reference model beside adapters, too, which comes on top', {
            location: formatOrigin(adapters.origin),
          }),
        ]
      : []),
  ];
}

const tooSmall = ({ rows, replicas }: GlobalBatch, micro: number, { origin }: Setting<number>): Diagnostic =>
  error('batch-too-small', `a step of ${rows} rows is less than ${replicas} GPUs with ${micro} rows each`, {
    location: formatOrigin(origin),
    help: `ask for at least ${replicas * micro} rows, or for smaller micro batches`,
  });
