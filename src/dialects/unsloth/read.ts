import { type Diagnostic, error, fail, note, ok, type Result, warning } from '../../core/index.ts';
import {
  formatOrigin,
  type GradientCheckpointing,
  type Lora,
  type Setting,
  type TrainingSpec,
} from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Claim, FileValue, Position, Reading } from '../dialect.ts';
import {
  type Converted,
  orNull,
  toBoolean,
  toFloatDType,
  toInteger,
  toNumber,
  toText,
  toWords,
} from '../hf-argparser/convert.ts';
import { parseFlags } from '../hf-argparser/grammar.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { layerValues, type Values } from '../hf-argparser/values.ts';
import { appendPlace, tokensFrom } from '../hf-trainer/arguments.ts';
import { readScript } from '../hf-trainer/script.ts';
import { isCli } from './detect.ts';
import { UNSLOTH, UNSLOTH_FIELDS } from './fields.ts';
import { scriptKeywords } from './script.ts';

export interface UnslothDetail {
  readonly values: Values;
  /** Settings stand in the text of a script of one's own. */
  readonly inScript: boolean;
  readonly appendAt: number;
}

/** The projections that unsloth-cli.py trains, and that the notebooks name. */
export const TARGETS = ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'gate_proj', 'up_proj', 'down_proj'];

/** Reads the flags of unsloth-cli.py, or the literal keywords of a script that works with FastLanguageModel. */
export function readUnsloth(_claim: Claim, position: Position, context: ReadContext): Result<Reading<UnslothDetail>> {
  const { argv, target } = position;
  const cli = isCli(target!);
  const script = readScript(target, context);
  const parsed = parseFlags(tokensFrom(argv, target!.argsFrom), {
    fields: UNSLOTH_FIELDS,
    negatable: new Set(),
    open: !cli,
  });
  const appendAt = appendPlace(parsed, argv);
  const values = layerValues({
    argv,
    flags: parsed.flags,
    appendAt,
    ...(cli ? {} : { script: scriptKeywords(script) }),
  });
  const reader = settingReader(values, cli);
  const preset = <T>(value: T | null, otherwise: T | null): Setting<T> =>
    ({
      value: cli ? value : otherwise,
      origin: cli ? UNSLOTH : { kind: 'derived', from: 'the library’s own default' },
    }) as Setting<T>;
  const model = reader.setting<string>(
    ['model_name', 'model_name_or_path'],
    toText,
    preset<string>('unsloth/llama-3-8b', null),
  );
  const dtype = reader.setting<'bf16' | 'fp16' | 'fp32' | 'auto' | null>(
    ['dtype'],
    orNull(toFloatDType),
    preset<'auto'>('auto', 'auto'),
  );
  // The library quantises unless it is told not to; its command line does not unless it is told to.
  const four = reader.setting<boolean>(['load_in_4bit'], toBoolean, preset(false, true));
  const full = reader.given(['full_finetuning'], toBoolean);
  const quantized = four.value === true && full?.value !== true;
  const method: NonNullable<TrainingSpec['method']> = full?.value
    ? { value: 'full', origin: full.origin }
    : quantized
      ? { value: 'qlora', origin: four.origin }
      : { value: 'lora', origin: four.origin };
  const spec: TrainingSpec = {
    ...(model.value === null ? {} : { modelNameOrPath: model }),
    objective: { value: 'sft', origin: UNSLOTH },
    method,
    dtype:
      dtype.value === null || dtype.value === 'auto'
        ? { value: 'bf16', origin: dtype.origin }
        : (dtype as Setting<'bf16'>),
    mixedPrecision: { value: dtype.value === 'fp16' ? 'fp16' : 'bf16', origin: dtype.origin },
    perDeviceTrainBatchSize: reader.setting<number>(['per_device_train_batch_size'], toInteger(1), preset(2, 8)),
    perDeviceEvalBatchSize: reader.setting<number>(['per_device_eval_batch_size'], toInteger(1), preset(4, 8)),
    eval: { value: false, origin: UNSLOTH },
    gradientAccumulationSteps: reader.setting<number>(['gradient_accumulation_steps'], toInteger(1), preset(4, 1)),
    maxLength: reader.setting<number>(['max_seq_length', 'max_length'], toInteger(1), preset(2048, 2048)),
    packing: reader.setting<boolean>(['packing'], toBoolean, preset(false, false)),
    attnImplementation: { value: 'flash_attention_2', origin: UNSLOTH },
    gradientCheckpointing: reader.setting<GradientCheckpointing>(
      ['use_gradient_checkpointing'],
      toCheckpointing,
      preset(OFFLOADED, OFFLOADED),
    ),
    optim: reader.setting<string>(['optim'], toText, preset('adamw_8bit', 'adamw_torch_fused')),
    maxGradNorm: reader.setting<number>(['max_grad_norm'], toNumber, preset(1, 1)),
    lossImpl: { value: 'fused', origin: UNSLOTH },
    fusedKernels: { value: ['norm', 'rotary', 'gate', 'lora'], origin: UNSLOTH },
    dataloaderNumWorkers: reader.setting<number>(['dataloader_num_workers'], toInteger(0), preset(0, 0)),
    ...outputDir(reader),
    ...(full?.value ? {} : { lora: readLora(reader, preset) }),
    ...(quantized
      ? {
          quantization: {
            value: { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'bf16', upcastRestToFp32: false },
            origin: four.origin,
          },
        }
      : {}),
  };
  reader.note('use_dora', 'use_rslora');
  const diagnostics: Diagnostic[] = [
    ...parsed.problems.map((problem) =>
      error('bad-option', problem.message, { location: `argv[${problem.index}]`, help: problem.help }),
    ),
    ...reader.diagnostics,
    ...(cli ? [] : unreadable(values, script.path ?? target!.name)),
  ];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    unread: [...reader.unread, ...leftOver(reader, idleOrUnknown(UNSLOTH_FIELDS))],
    diagnostics,
    resume: { kind: 'unsupported', reason: 'unsloth calls train() without a checkpoint to go on from' },
    detail: { values, inScript: !cli, appendAt },
  });
}

const OFFLOADED: GradientCheckpointing = { enabled: true, useReentrant: true, everyNLayers: 1, offload: true };

/** `unsloth` moves what is kept of each layer to host RAM; `true` keeps it; anything else is off. */
function toCheckpointing(raw: FileValue): Converted<GradientCheckpointing> {
  const word = String(raw).toLowerCase();
  const enabled = word === 'unsloth' || word === 'true';
  return { ok: true, value: { ...OFFLOADED, enabled, useReentrant: enabled, offload: word === 'unsloth' } };
}

const outputDir = (reader: SettingReader): TrainingSpec => {
  const given = reader.given(['output_dir'], toText);
  return { outputDir: given ?? { value: 'outputs', origin: UNSLOTH } };
};

function readLora(
  reader: SettingReader,
  preset: <T>(value: T | null, otherwise: T | null) => Setting<T>,
): Setting<Lora> {
  const r = reader.setting<number>(['r'], toInteger(1), preset(16, 16));
  const alpha = reader.setting<number>(['lora_alpha'], toNumber, preset(16, 16));
  const dropout = reader.setting<number>(['lora_dropout'], toNumber, preset(0, 0));
  const targets = reader.setting<readonly string[]>(
    ['target_modules'],
    toWords,
    preset<readonly string[]>(TARGETS, TARGETS),
  );
  const saved = reader.given(['modules_to_save'], orNull(toWords));
  if (r.value === null || alpha.value === null || dropout.value === null || targets.value === null) {
    return { value: null, origin: r.origin };
  }
  const all = targets.value.length === TARGETS.length && TARGETS.every((name) => targets.value!.includes(name));
  const value: Lora = {
    r: r.value,
    loraAlpha: alpha.value,
    loraDropout: dropout.value,
    targetModules: all || targets.value[0] === 'all-linear' ? 'all-linear' : targets.value,
    adapterDtype: 'fp32',
    modulesToSave: saved?.value ?? [],
  };
  return { value, origin: r.origin };
}

/** A script is a program: what it computes is not known, and that is said by name. */
function unreadable(values: Values, path: string): readonly Diagnostic[] {
  const names = [
    'model_name',
    'max_seq_length',
    'load_in_4bit',
    'per_device_train_batch_size',
    'gradient_accumulation_steps',
    'r',
    'optim',
  ];
  const computed = names.flatMap((name) => {
    const found = values.find(name);
    return found?.place.kind === 'script' && found.place.unknown ? [{ name, found }] : [];
  });
  return [
    note(
      'read-from-script',
      `${path} is a program: only literal arguments of its calls are read, and none is rewritten`,
      { location: path },
    ),
    ...computed.map(({ name, found }) =>
      warning('computed-setting', `${name} is computed by the script, so its value is not known`, {
        location: formatOrigin(found.origin),
        help: `say it with --set, or write the value into the call`,
      }),
    ),
  ];
}
