import { type Diagnostic, fail, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Objective, type Setting, type TrainingSpec } from '../../spec/index.ts';
import type { Claim, Position, Processes, Reading, Sharding } from '../dialect.ts';
import { orNull, toBoolean, toInteger, toNumber, toOneOf, toText } from '../hf-argparser/convert.ts';
import { type FlagLaunch, readFlags } from '../hf-argparser/flag-launch.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { readAdapter } from './adapter.ts';
import { AUTOTRAIN, GRAMMAR, IDLE } from './fields.ts';

export interface AutotrainDetail {
  readonly launch: FlagLaunch;
}

const OBJECTIVES: Readonly<Record<string, Objective>> = {
  default: 'clm',
  sft: 'sft',
  dpo: 'dpo',
  orpo: 'orpo',
  reward: 'reward',
};
const origin = AUTOTRAIN;

/** Reads the flags of `autotrain llm --train`, which starts accelerate over all visible GPUs by itself. */
export function readAutotrain(claim: Claim, position: Position): Result<Reading<AutotrainDetail>> {
  const launch = readFlags(position.argv, claim.from + 2, GRAMMAR);
  const reader = settingReader(launch.values, true);
  const on = (key: string): Setting<boolean> => reader.setting<boolean>([key], toBoolean, { value: false, origin });
  const micro = reader.setting<number>(['batch_size'], toInteger(1), { value: 2, origin });
  const trainer = reader.setting<string>(['trainer'], toText, { value: 'default', origin });
  const precision = reader.given(['mixed_precision'], orNull(toOneOf('bf16', 'fp16', 'no')));
  const off = on('disable_gradient_checkpointing');
  const flash = on('use_flash_attention_2');
  const validation = reader.given(['valid_split'], orNull(toText));
  const model = reader.given(['model'], toText);
  const adapter = readAdapter(reader);
  reader.note('eval_strategy', 'model_max_length', 'backend');
  const spec: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    objective: { value: OBJECTIVES[trainer.value ?? ''] ?? null, origin: trainer.origin },
    ...adapter,
    mixedPrecision: { value: precision?.value ?? 'no', origin: precision?.origin ?? origin },
    perDeviceTrainBatchSize: micro,
    perDeviceEvalBatchSize: { value: micro.value, origin: { kind: 'derived', from: 'batch_size' } },
    eval: { value: Boolean(validation?.value), origin: validation?.origin ?? origin },
    gradientAccumulationSteps: reader.setting<number>(['gradient_accumulation'], toInteger(1), { value: 4, origin }),
    maxLength: reader.setting<number>(['block_size'], toInteger(1), { value: 1024, origin }),
    packing: { value: trainer.value === 'default' || trainer.value === 'sft', origin: trainer.origin },
    attnImplementation: { value: flash.value ? 'flash_attention_2' : 'sdpa', origin: flash.origin },
    gradientCheckpointing: {
      value:
        off.value === null
          ? null
          : {
              enabled: !off.value,
              useReentrant: !off.value && adapter.quantization !== undefined,
              everyNLayers: 1,
              offload: false,
            },
      origin: off.origin,
    },
    optim: reader.setting<string>(['optimizer'], toText, { value: 'adamw_torch', origin }),
    maxGradNorm: reader.setting<number>(['max_grad_norm'], toNumber, { value: 1, origin }),
    saveTotalLimit: reader.setting<number | null>(['save_total_limit'], toInteger(1), { value: 1, origin }),
    outputDir: reader.setting<string>(['project_name'], toText, { value: 'project-name', origin }),
  };
  const diagnostics = [...launch.problems, ...reader.diagnostics, ...notEstimated(reader)];
  if (diagnostics.some((each) => each.severity === 'error')) return fail(...diagnostics);
  return ok({
    spec,
    via: 'cli',
    processes: processesOf(position),
    ...shardingOf(reader),
    unread: [...reader.unread, ...leftOver(reader, idleOrUnknown(IDLE))],
    diagnostics,
    resume: { kind: 'unsupported', reason: 'autotrain has no flag that names a checkpoint' },
    detail: { launch },
  });
}

/** Source: autotrain/commands.py `get_accelerate_command`. */
const processesOf = ({ visibleGpus }: Position): Processes => ({
  nodes: 1,
  perNode: visibleGpus === undefined ? null : Math.max(1, visibleGpus),
  distributed: (visibleGpus ?? 2) > 1,
  origin: { kind: 'derived', from: visibleGpus === undefined ? 'the visible GPUs, unknown here' : 'the visible GPUs' },
});

function shardingOf(reader: SettingReader): { readonly sharding?: Sharding } {
  const given = reader.given(['distributed_backend'], orNull(toText));
  return given?.value === 'deepspeed' ? { sharding: { strategy: 'zero3', offload: [], origin: given.origin } } : {};
}

const LEFT_OUT: Readonly<Record<string, string>> = {
  unsloth: "Unsloth's kernels change what is held, which the estimate leaves out",
  auto_find_batch_size: 'the trainer shrinks its own batch on out-of-memory, which changes the global batch',
};

const notEstimated = (reader: SettingReader): readonly Diagnostic[] =>
  Object.entries(LEFT_OUT).flatMap(([key, message]) => {
    const given = reader.given([key], toBoolean);
    return given?.value ? [warning('not-estimated', message, { location: formatOrigin(given.origin) })] : [];
  });
