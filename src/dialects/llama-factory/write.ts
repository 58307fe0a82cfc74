import type { FloatDType } from '../../core/index.ts';
import type {
  AttnImplementation,
  GradientCheckpointing,
  Lora,
  LossImpl,
  Method,
  Quantization,
  SettingName,
} from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { orNull, toBoolean } from '../hf-argparser/convert.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { withoutSearch } from '../hf-trainer/write.ts';
import { fieldSetter, type SetField, writeTrainingArguments } from '../hf-trainer/write-arguments.ts';
import type { LlamaFactoryDetail } from './read.ts';

/** Writes into the file, or into the word of the command that wins over it. */
export function writeLlamaFactory(
  layer: Layer<LlamaFactoryDetail>,
  setting: SettingName,
  to: unknown,
  stack: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values } = detail;
  const set = fieldSetter(values, () => true);
  switch (setting) {
    case 'maxLength':
      return writeLength(detail, set, to as number);
    case 'packing':
      return writePacking(detail, set, to as boolean);
    case 'attnImplementation':
      return writeAttention(set, to as AttnImplementation);
    case 'gradientCheckpointing':
      return writeCheckpointing(detail, set, to as GradientCheckpointing);
    case 'lossImpl':
      return writeLoss(detail, set, to as LossImpl);
    case 'dtype':
      return writeDtype(detail, set, to as FloatDType | 'auto', stack);
    case 'mixedPrecision':
      return isOn(detail, 'pure_bf16')
        ? cannot('pure_bf16 is on, which takes the place of mixed precision')
        : writeTrainingArguments(values, set, setting, to);
    case 'optim':
      return detail.optimizerSwitch
        ? cannot(`${detail.optimizerSwitch} decides the optimizer`)
        : writeTrainingArguments(values, set, setting, to);
    case 'method':
      return stack.spec.method?.value === to ? wrote() : writeMethod(detail, set, to as Method);
    case 'quantization':
      return writeQuantization(detail, set, to as Quantization | null, stack);
    case 'lora':
      return writeLora(detail, set, to as Lora | null);
    case 'resumeFromCheckpoint': {
      const { resume } = layer.reading;
      return resume?.kind === 'supported'
        ? set('resume_from_checkpoint', to as FileValue)
        : cannot(resume?.reason ?? 'it cannot resume');
    }
    default:
      return withoutSearch(values, setting, writeTrainingArguments(values, set, setting, to));
  }
}

const isOn = ({ values }: LlamaFactoryDetail, key: string): boolean => {
  const found = values.find(key);
  const read = found && orNull(toBoolean)(found.raw);
  return read?.ok === true && read.value === true;
};

/** Sets a switch unless it stands that way already; `standing`: what holds where nothing is written. */
function writeSwitch(detail: LlamaFactoryDetail, set: SetField, key: string, to: boolean, standing = false): Written {
  const now = detail.values.find(key) ? isOn(detail, key) : standing;
  return now === to ? wrote() : set(key, to);
}

function writeLength({ values }: LlamaFactoryDetail, set: SetField, to: number): Written {
  const older = ['max_source_length', 'max_target_length'].find((key) => values.find(key));
  if (older && !values.find('cutoff_len')) return cannot(`the length is split between prompt and answer by ${older}`);
  return set('cutoff_len', to);
}

function writePacking(detail: LlamaFactoryDetail, set: SetField, to: boolean): Written {
  if (!to && isOn(detail, 'neat_packing')) return together(set('neat_packing', false), set('packing', false));
  return set('packing', to);
}

const ATTENTIONS: Readonly<Partial<Record<AttnImplementation, string>>> = {
  eager: 'disabled',
  sdpa: 'sdpa',
  flash_attention_2: 'fa2',
  flash_attention_3: 'fa3',
};

function writeAttention(set: SetField, to: AttnImplementation): Written {
  const name = ATTENTIONS[to];
  return name ? set('flash_attn', name) : cannot(`LLaMA-Factory has no ${to}`);
}

function writeCheckpointing(detail: LlamaFactoryDetail, set: SetField, to: GradientCheckpointing): Written {
  if (to.everyNLayers !== 1) return cannot('LLaMA-Factory checkpoints every layer or none');
  const trainer = detail.values.find('gradient_checkpointing');
  const own = writeSwitch(detail, set, 'disable_gradient_checkpointing', !to.enabled);
  if (!to.enabled) {
    if (to.offload) return cannot('LLaMA-Factory offloads only what checkpointing keeps');
    return together(own, trainer ? set('gradient_checkpointing', false) : wrote());
  }
  return together(
    own,
    writeSwitch(detail, set, 'use_reentrant_gc', to.useReentrant, true),
    writeSwitch(detail, set, 'use_unsloth_gc', to.offload),
  );
}

function writeLoss(detail: LlamaFactoryDetail, set: SetField, to: LossImpl): Written {
  if (to === 'chunked') return cannot('LLaMA-Factory has no chunked loss');
  const own = ['use_dft_loss', 'use_asft_loss', 'use_eaft_loss'].find((key) => isOn(detail, key));
  if (to === 'fused' && own) return cannot(`${own} needs the logits of all tokens`);
  if (to === 'fused' && detail.stage !== 'pt' && detail.stage !== 'sft') {
    return cannot(`stage ${detail.stage} needs the logits of all tokens`);
  }
  const other = detail.values.find('use_liger_kernel') ? set('use_liger_kernel', to === 'fused') : wrote();
  return together(writeSwitch(detail, set, 'enable_liger_kernel', to === 'fused'), other);
}

/** Only `pure_bf16` says anything about the weights, and only where all of them are trained. */
function writeDtype(detail: LlamaFactoryDetail, set: SetField, to: FloatDType | 'auto', { spec }: StackView): Written {
  if (spec.dtype?.value === to) return wrote();
  if (spec.method?.value !== 'full') return cannot('frozen weights stay in the dtype of the checkpoint');
  if (to === 'bf16' && spec.distributed?.value?.strategy !== 'zero3') return set('pure_bf16', true);
  if (to === 'fp32' && isOn(detail, 'pure_bf16')) return set('pure_bf16', false);
  return cannot(`LLaMA-Factory cannot be told to hold trained weights in ${to}`);
}

/** Turns a key off only where it stands somewhere. */
const off = ({ values }: LlamaFactoryDetail, set: SetField, key: string, value: FileValue): Written =>
  values.find(key) ? set(key, value) : wrote();

const DEFAULT_TYPE = 'lora';

function writeType(detail: LlamaFactoryDetail, set: SetField, to: 'lora' | 'full'): Written {
  const now = detail.values.find('finetuning_type')?.raw ?? DEFAULT_TYPE;
  if (now === to) return wrote();
  const galore = ['use_galore', 'use_apollo', 'use_badam'].find((key) => isOn(detail, key));
  if (to === 'lora' && galore) return cannot(`${galore} does not go with LoRA`);
  return set('finetuning_type', to);
}

function writeMethod(detail: LlamaFactoryDetail, set: SetField, to: Method): Written {
  const bits = detail.values.find('quantization_bit')?.raw ?? null;
  const unquantized = off(detail, set, 'quantization_bit', null);
  switch (to) {
    case 'full':
      return together(writeType(detail, set, 'full'), unquantized, off(detail, set, 'use_dora', false));
    case 'lora':
      return together(writeType(detail, set, 'lora'), unquantized, off(detail, set, 'use_dora', false));
    case 'dora':
      return together(writeType(detail, set, 'lora'), unquantized, set('use_dora', true));
    case 'qlora':
      return together(writeType(detail, set, 'lora'), String(bits) === '4' ? wrote() : set('quantization_bit', 4));
    default:
      return cannot(`LLaMA-Factory has no ${to}`);
  }
}

/** The compute dtype is that of the mixed precision; nothing else is cast up. */
function writeQuantization(
  detail: LlamaFactoryDetail,
  set: SetField,
  to: Quantization | null,
  { spec }: StackView,
): Written {
  if (to === null) return off(detail, set, 'quantization_bit', null);
  if (to.upcastRestToFp32) return cannot('LLaMA-Factory does not prepare a quantised model for k-bit training');
  const computes = isOn(detail, 'pure_bf16') || spec.mixedPrecision?.value !== 'fp16' ? 'bf16' : 'fp16';
  if (to.computeDtype !== computes) return cannot(`a quantised model computes in ${computes} in this launch`);
  if (to.bits === 8 && ['zero3', 'fsdp1', 'fsdp2', 'hsdp'].includes(spec.distributed?.value?.strategy ?? '')) {
    return cannot('an 8-bit model cannot be sharded');
  }
  const { values } = detail;
  const bits = set('quantization_bit', to.bits);
  const type = writeType(detail, set, 'lora');
  const method = off(detail, set, 'quantization_method', 'bnb');
  if (to.bits === 8) return together(type, bits, method);
  const quantType =
    values.find('quantization_type') || to.quantType !== 'nf4' ? set('quantization_type', to.quantType) : wrote();
  return together(type, bits, method, quantType, writeSwitch(detail, set, 'double_quantization', to.doubleQuant, true));
}

function writeLora(detail: LlamaFactoryDetail, set: SetField, to: Lora | null): Written {
  if (to === null) return writeType(detail, set, 'full');
  if (to.adapterDtype !== 'fp32') return cannot('adapters are kept in fp32');
  if (to.targetModules === 'default') return cannot('LLaMA-Factory has no list of targets for each architecture');
  const { values } = detail;
  const targets = to.targetModules === 'all-linear' ? 'all' : to.targetModules.join(',');
  const standing = values.find('lora_target');
  const now = standing ? String(standing.raw) : 'all';
  const saved = to.modulesToSave.length > 0 ? to.modulesToSave.join(',') : null;
  const number = (key: string, value: number, stands: number): Written =>
    values.find(key) || value !== stands ? set(key, value) : wrote();
  return together(
    writeType(detail, set, 'lora'),
    number('lora_rank', to.r, 8),
    number('lora_alpha', to.loraAlpha, Number.NaN),
    number('lora_dropout', to.loraDropout, 0),
    now === targets ? wrote() : set('lora_target', targets),
    saved === null ? off(detail, set, 'additional_target', null) : set('additional_target', saved),
  );
}
