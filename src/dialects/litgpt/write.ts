import type { FloatDType } from '../../core/index.ts';
import {
  type Distributed,
  dataParallelSize,
  type GradientCheckpointing,
  type Lora,
  type Quantization,
  type SettingName,
} from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { toBoolean } from '../hf-argparser/convert.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { classOf } from '../optimizer-class.ts';
import { SWITCH_DEFAULTS, SWITCHES, targetsOf } from './adapter.ts';
import { TASKS } from './keys.ts';
import type { LitgptDetail } from './read.ts';

/** Writes into the config, or into the option of the command that wins over it. */
export function writeLitgpt(
  layer: Layer<LitgptDetail>,
  setting: SettingName,
  to: unknown,
  view: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values, task } = detail;
  const { spec } = view;
  const same = JSON.stringify(spec[setting]?.value) === JSON.stringify(to);
  if (detail.inScript && !same) return cannot('its settings stand in the text of the script');
  switch (setting) {
    case 'perDeviceTrainBatchSize':
      return writeMicro(detail, to as number, view);
    case 'gradientAccumulationSteps':
      return writeAccumulation(detail, to as number, view);
    case 'perDeviceEvalBatchSize':
      return same ? wrote() : cannot('litgpt evaluates with train.micro_batch_size');
    case 'maxLength':
      return values.assign('train.max_seq_length', to as number);
    case 'dtype':
      return same ? wrote() : writePrecision(detail, to as FloatDType, view);
    case 'mixedPrecision':
      return same ? wrote() : writeMixed(detail, String(to), view);
    case 'optim':
      return same ? wrote() : writeOptimizer(detail, String(to), spec.quantization?.value != null);
    case 'maxGradNorm':
      if (same) return wrote();
      return task === 'pretrain'
        ? values.assign('train.max_norm', to === 0 ? null : (to as number))
        : cannot('litgpt clips only in pretraining');
    case 'gradientCheckpointing':
      return sameCheckpointing(spec.gradientCheckpointing?.value, to as GradientCheckpointing)
        ? wrote()
        : cannot('litgpt recomputes layers exactly where several devices finetune');
    case 'method':
      if (same) return wrote();
      if (task !== 'lora') return cannot('another method is another command of litgpt');
      return to === 'qlora'
        ? quantise(detail, 'bnb.nf4-dq', view)
        : to === 'lora'
          ? dequantise(detail)
          : cannot('another method is another command of litgpt');
    case 'quantization':
      return same ? wrote() : writeQuantization(detail, to as Quantization | null, view);
    case 'lora':
      return same ? wrote() : writeLora(detail, to as Lora | null, view);
    case 'distributed':
      return writeDistributed(to as Distributed, spec.distributed?.value ?? undefined);
    case 'dataloaderNumWorkers':
      return writeWorkers(detail, to as number);
    case 'outputDir':
      return values.assign('out_dir', String(to));
    case 'resumeFromCheckpoint':
      return layer.reading.resume?.kind === 'supported'
        ? values.assign('resume', fileOf(String(to)))
        : cannot(layer.reading.resume?.reason ?? 'it cannot resume');
    case 'lossImpl':
    case 'attnImplementation':
    case 'packing':
    case 'dataloaderPinMemory':
      return same ? wrote() : cannot(`litgpt decides ${setting === 'lossImpl' ? 'the loss' : setting} itself`);
    default:
      return undefined;
  }
}

/** litgpt loads the file in the folder of a step. */
const fileOf = (checkpoint: string): string =>
  checkpoint.endsWith('.pth') ? checkpoint : `${checkpoint.replace(/\/+$/, '')}/lit_model.pth`;

const wantedOr = <T>({ wanted, spec }: StackView, setting: SettingName): T | undefined =>
  (wanted?.has(setting) ? wanted.get(setting) : spec[setting]?.value) as T | undefined;

/** The global batch stays, so accumulation follows a smaller micro batch by itself. */
function writeMicro({ values }: LitgptDetail, to: number, view: StackView): Written {
  const micro = values.assign('train.micro_batch_size', to);
  return view.wanted && !view.wanted.has('gradientAccumulationSteps') && indivisible(view, to)
    ? cannot(`the global batch is no multiple of ${to}`)
    : micro;
}

function indivisible({ spec }: StackView, to: number): boolean {
  const micro = spec.perDeviceTrainBatchSize?.value ?? to;
  const steps = spec.gradientAccumulationSteps?.value;
  return steps != null && (micro * steps) % to !== 0;
}

/** There is no key for it: what the micro batch and the ranks leave of `train.global_batch_size`. */
function writeAccumulation({ values, task }: LitgptDetail, to: number, view: StackView): Written {
  const micro = wantedOr<number>(view, 'perDeviceTrainBatchSize');
  const distributed = wantedOr<Distributed>(view, 'distributed');
  if (micro === undefined || micro === null || !distributed) return cannot('the global batch cannot be known');
  const whole = micro * to * dataParallelSize(distributed);
  const stands = values.find('train.global_batch_size')?.raw ?? TASKS[task].globalBatchSize;
  return whole === Number(stands) ? wrote() : values.assign('train.global_batch_size', whole);
}

const NAMES: Readonly<Record<FloatDType, string>> = { bf16: 'bf16', fp16: '16', fp32: '32' };

const NO_FP16 = 'litgpt pretrains in bf16 or fp32';

/** One word says both what weights are held in and autocast: 16-bit weights go without. */
function writePrecision({ values, task }: LitgptDetail, to: FloatDType, view: StackView): Written {
  if (to === 'fp16' && task === 'pretrain') return cannot(NO_FP16);
  const mixed = wantedOr<string>(view, 'mixedPrecision') ?? 'no';
  if (to === 'fp32' && mixed !== 'no') return values.assign('precision', `${mixed === 'fp16' ? '16' : 'bf16'}-mixed`);
  return values.assign('precision', `${NAMES[to]}-true`);
}

function writeMixed({ values, task }: LitgptDetail, to: string, view: StackView): Written {
  if (to === 'fp16' && task === 'pretrain') return cannot(NO_FP16);
  const dtype = wantedOr<FloatDType>(view, 'dtype') ?? 'fp32';
  if (to === 'no') return values.assign('precision', `${NAMES[dtype]}-true`);
  if (view.spec.quantization?.value != null) return cannot('litgpt quantises only with a precision that is not mixed');
  return dtype === 'fp32'
    ? values.assign('precision', `${to === 'fp16' ? '16' : 'bf16'}-mixed`)
    : cannot(`weights in ${dtype} go without autocast in litgpt`);
}

const sameCheckpointing = (now: GradientCheckpointing | null | undefined, to: GradientCheckpointing): boolean =>
  now?.enabled === to.enabled && now.offload === to.offload && now.everyNLayers === to.everyNLayers && !to.useReentrant;

function writeOptimizer({ values }: LitgptDetail, to: string, quantized: boolean): Written {
  if (quantized) return cannot('a quantised model takes the paged AdamW of bitsandbytes in litgpt');
  const like = classOf(to);
  if (!like) return cannot(`litgpt is not known to have ${to}`);
  if (like.fused !== undefined) return cannot('the kind of AdamW follows from the command in litgpt');
  const path = values.find('optimizer.class_path');
  const fused = values.find('optimizer.init_args.fused', 'optimizer.init_args.foreach');
  if (path && fused) return cannot(`${fused.key} would have to be taken out of the config`);
  return values.assign(path ? 'optimizer.class_path' : 'optimizer', like.path);
}

/** Quantised weights need a precision that is not mixed, one device and AdamW, which is swapped for the paged one. */
function quantise({ values }: LitgptDetail, name: string, view: StackView): Written {
  const { spec } = view;
  const now = spec.distributed?.value;
  if (now && dataParallelSize(now) > 1) return cannot('litgpt quantises only on one device');
  const optimizer = String(values.find('optimizer.class_path', 'optimizer')?.raw ?? 'AdamW');
  if (!optimizer.includes('AdamW')) return cannot('litgpt quantises only with AdamW');
  const stands = values.find('quantize')?.raw;
  const dtype = (wantedOr<Quantization | null>(view, 'quantization') ?? undefined)?.computeDtype ?? 'bf16';
  const mixed = spec.mixedPrecision?.value !== 'no';
  const precision = mixed || spec.dtype?.value !== dtype ? values.assign('precision', `${NAMES[dtype]}-true`) : wrote();
  const family = (text: string): string => text.replace(/-dq$/, '');
  // One rewrite may ask for QLoRA and say separately which kind.
  const keep =
    typeof stands === 'string' && view.wanted === undefined && family(stands) === family(name) && stands === name;
  return together(keep ? wrote() : values.assign('quantize', name), precision);
}

const dequantise = ({ values }: LitgptDetail): Written =>
  values.find('quantize')?.raw == null ? wrote() : values.assign('quantize', null);

function writeQuantization(detail: LitgptDetail, to: Quantization | null, view: StackView): Written {
  if (detail.task !== 'lora') return cannot('litgpt quantises only a base with LoRA');
  if (to === null) return dequantise(detail);
  if (to.upcastRestToFp32) return cannot('litgpt leaves what is not quantised in its dtype');
  if (to.bits === 8) return quantise(detail, 'bnb.int8-training', view);
  return quantise(detail, nameOf(to), view);
}

const nameOf = ({ quantType, doubleQuant }: Quantization): string => `bnb.${quantType}${doubleQuant ? '-dq' : ''}`;

function writeLora(detail: LitgptDetail, to: Lora | null, { spec }: StackView): Written {
  const { values, task, places } = detail;
  if (task !== 'lora' || to === null) return cannot('LoRA is another command of litgpt: finetune_lora');
  if (to.adapterDtype !== spec.dtype?.value) return cannot(`adapters are held in ${spec.dtype?.value} in this launch`);
  if (to.modulesToSave.length > 0) return cannot('litgpt trains adapters only');
  const wanted = to.targetModules;
  if (wanted === 'default') return cannot('litgpt has no list of targets for each architecture');
  const on = (name: (typeof SWITCHES)[number]): boolean =>
    wanted === 'all-linear' ? name !== 'lora_head' : places[name].every((each) => wanted.includes(each));
  const made = targetsOf(on, places);
  const fits =
    typeof made === 'string'
      ? wanted === made
      : wanted !== 'all-linear' && wanted.length === made.length && made.every((name) => wanted.includes(name));
  if (!fits) return cannot('litgpt cannot put LoRA in just these layers');
  const number = (key: string, value: number, otherwise: number): Written =>
    (values.find(key)?.raw ?? otherwise) === value ? wrote() : values.assign(key, value);
  return together(
    number('lora_r', to.r, 8),
    number('lora_alpha', to.loraAlpha, 16),
    number('lora_dropout', to.loraDropout, 0.05),
    ...SWITCHES.map((name) => {
      const read = toBoolean((values.find(name)?.raw ?? SWITCH_DEFAULTS[name]) as FileValue);
      return read.ok && read.value === on(name) ? wrote() : values.assign(name, on(name));
    }),
  );
}

function writeDistributed(to: Distributed, now: Distributed | undefined): Written | undefined {
  if (!now || to.nodes !== now.nodes || to.processesPerNode !== now.processesPerNode) return undefined;
  const same = to.strategy === now.strategy && to.offload.join() === now.offload.join();
  return same ? wrote() : cannot('litgpt decides itself how a model is shared out, and offloads nothing');
}

/** A module of data that is named with its arguments has them under `init_args`. */
function writeWorkers({ values }: LitgptDetail, to: number): Written {
  const keys = ['data.init_args.num_workers', 'data.num_workers'];
  if (values.find(...keys)) return values.assign(keys[0]!, to, keys.slice(1));
  return values.find('data.class_path')
    ? values.assign(keys[0]!, to)
    : cannot('the data module is not named in this launch');
}
