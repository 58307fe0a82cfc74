import type { FloatDType } from '../../core/index.ts';
import type { Distributed, GradientCheckpointing, Lora, Method, Quantization, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { withoutOverrides } from '../dotted-values.ts';
import { orNull, toBoolean } from '../hf-argparser/convert.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { classOf } from '../optimizer-class.ts';
import { placesOf } from './adapter.ts';
import { fusesProjections, hasNamedQlora } from './models.ts';
import type { TorchtuneDetail } from './read.ts';

/** Settings that are one key each. */
const ONE_KEY: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceTrainBatchSize: 'batch_size',
  perDeviceEvalBatchSize: 'batch_size_val',
  maxLength: 'tokenizer.max_seq_len',
};

/** Writes into the config, or as a word of the command where a word says it, or where the config comes with torchtune. */
export function writeTorchtune(
  layer: Layer<TorchtuneDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values } = detail;
  switch (setting) {
    case 'perDeviceEvalBatchSize':
      if (!spec.eval?.value) return cannot('this run does not evaluate');
      break;
    case 'gradientAccumulationSteps':
      return to !== 1 && spec.optimizerInBackward?.value
        ? cannot('optimizer_in_bwd takes no accumulation')
        : values.assign('gradient_accumulation_steps', to as number);
    case 'maxGradNorm':
      if (to === spec.maxGradNorm?.value) return wrote();
      return to !== 0 && spec.optimizerInBackward?.value
        ? cannot('optimizer_in_bwd takes no clipping')
        : values.assign('clip_grad_norm', to === 0 ? null : (to as number));
    case 'packing':
      return writePacking(detail, to as boolean);
    case 'gradientCheckpointing':
      return writeCheckpointing(detail, to as GradientCheckpointing);
    case 'optim':
      return writeOptimizer(detail, String(to), spec.optim?.value);
    case 'dtype':
      return to === 'bf16' || to === 'fp32' ? values.assign('dtype', to) : cannot(`torchtune does not train in ${to}`);
    case 'mixedPrecision':
      return to === 'no' ? wrote() : cannot('torchtune trains without autocast');
    case 'attnImplementation':
      return spec.attnImplementation?.value === to
        ? wrote()
        : cannot('torchtune chooses the attention itself: flex for packed rows, sdpa for all others');
    case 'lossImpl':
      return spec.lossImpl?.value === to ? wrote() : cannot(`torchtune has no ${to} loss`);
    case 'method':
      return spec.method?.value === to ? wrote() : writeMethod(detail, to as Method);
    case 'quantization':
      return writeQuantization(detail, to as Quantization | null, spec.dtype?.value as FloatDType);
    case 'lora':
      return writeLora(detail, to as Lora | null, spec.dtype?.value as FloatDType);
    case 'distributed':
      return writeOffload(detail, to as Distributed, spec.distributed?.value ?? undefined);
    case 'dataloaderNumWorkers':
    case 'dataloaderPinMemory':
      return spec[setting]?.value === to ? wrote() : cannot('torchtune loads data in the trainer itself');
    case 'outputDir':
      return writeOutputDir(detail, String(to));
    case 'resumeFromCheckpoint':
      return cannot(layer.reading.resume?.kind === 'unsupported' ? layer.reading.resume.reason : 'it cannot resume');
    default:
  }
  const key = ONE_KEY[setting];
  return key ? values.assign(key, to as FileValue) : undefined;
}

const isOn = ({ values }: TorchtuneDetail, key: string): boolean => {
  const found = values.find(key);
  const read = found && orNull(toBoolean)(found.raw);
  return read?.ok === true && read.value === true;
};

const switchTo = (detail: TorchtuneDetail, key: string, to: boolean): Written =>
  isOn(detail, key) === to ? wrote() : detail.values.assign(key, to);

function writePacking(detail: TorchtuneDetail, to: boolean): Written {
  const { values } = detail;
  if (Array.isArray(values.find('dataset')?.raw))
    return cannot('several datasets stand in the config, each packed for itself');
  if (to && !values.find('tokenizer.max_seq_len')?.raw) return cannot('packing needs tokenizer.max_seq_len');
  return switchTo(detail, 'dataset.packed', to);
}

function writeCheckpointing(detail: TorchtuneDetail, to: GradientCheckpointing): Written {
  if (to.everyNLayers !== 1) return cannot('torchtune checkpoints every layer or none');
  if (to.useReentrant) return cannot('torchtune checkpoints without re-entry');
  if (to.offload && !to.enabled) return cannot('torchtune offloads only what checkpointing keeps');
  return together(
    switchTo(detail, 'enable_activation_checkpointing', to.enabled),
    switchTo(detail, 'enable_activation_offloading', to.offload),
  );
}

/** A class of bitsandbytes takes no `fused`, so that key goes: `~key` takes it out of the config. */
function writeOptimizer(detail: TorchtuneDetail, to: string, now: string | null | undefined): Written {
  if (to === now) return wrote();
  const like = classOf(to);
  if (!like) return cannot(`torchtune is not known to have ${to}`);
  const { values, overrides, appendAt } = detail;
  const set = values.assign('optimizer._component_', like.path);
  const stands = values.find('optimizer.fused');
  if (like.fused !== undefined) {
    const fits = (stands?.raw === true) === like.fused;
    return fits ? set : together(set, values.assign('optimizer.fused', like.fused));
  }
  if (!stands) return set;
  const typed = withoutOverrides(overrides, 'optimizer.fused');
  const inConfig = typed.length === 0 || values.file === undefined || values.file.source.text.includes('fused:');
  return together(
    set,
    wrote(...typed),
    inConfig ? wrote({ kind: 'insert', at: appendAt, key: '~optimizer.fused', tokens: ['~optimizer.fused'] }) : wrote(),
  );
}

/** Full training and adapters are two recipes with configs of their own. */
const OTHER_RECIPE = 'full training and LoRA are different recipes of torchtune: start from the other one with tune cp';

const writeComponent = ({ values }: TorchtuneDetail, to: string): Written =>
  values.find('model._component_')?.raw === to ? wrote() : values.assign('model._component_', to);

function quantise(detail: TorchtuneDetail): Written {
  const { builder } = detail;
  if (!builder || builder.adapter === 'none') return cannot(OTHER_RECIPE);
  if (builder.adapter === 'qlora' || isOn(detail, 'model.quantize_base')) return wrote();
  return hasNamedQlora(builder)
    ? writeComponent(detail, `${builder.module}qlora_${builder.base}`)
    : detail.values.assign('model.quantize_base', true);
}

function dequantise(detail: TorchtuneDetail): Written {
  const { builder } = detail;
  if (!builder || builder.adapter === 'none') return wrote();
  return together(
    builder.adapter === 'qlora' ? writeComponent(detail, `${builder.module}lora_${builder.base}`) : wrote(),
    switchTo(detail, 'model.quantize_base', false),
  );
}

function writeMethod(detail: TorchtuneDetail, to: Method): Written {
  if (!detail.builder || detail.builder.adapter === 'none' || to === 'full') return cannot(OTHER_RECIPE);
  switch (to) {
    case 'lora':
      return together(dequantise(detail), switchTo(detail, 'model.use_dora', false));
    case 'dora':
      return together(dequantise(detail), switchTo(detail, 'model.use_dora', true));
    case 'qlora':
      return quantise(detail);
    default:
      return cannot(`torchtune has no ${to}`);
  }
}

function writeQuantization(detail: TorchtuneDetail, to: Quantization | null, dtype: FloatDType | undefined): Written {
  if (to === null) return dequantise(detail);
  if (to.bits !== 4 || to.quantType !== 'nf4' || !to.doubleQuant) {
    return cannot('torchtune quantises to nf4 with quantised scales');
  }
  if (to.upcastRestToFp32) return cannot('torchtune leaves what is not quantised in its dtype');
  if (to.computeDtype !== dtype) return cannot(`a quantised model computes in ${dtype} in this launch`);
  return quantise(detail);
}

function writeLora(detail: TorchtuneDetail, to: Lora | null, dtype: FloatDType | undefined): Written {
  const { builder, values } = detail;
  if (!builder || builder.adapter === 'none' || to === null) return cannot(OTHER_RECIPE);
  if (to.adapterDtype !== dtype) return cannot(`adapters are held in ${dtype} in this launch`);
  if (to.modulesToSave.length > 0) return cannot('torchtune trains adapters only');
  const places = placesOf(to.targetModules, fusesProjections(builder));
  if (!places) return cannot('torchtune cannot put LoRA in just these layers');
  const set = (key: string, value: FileValue, otherwise?: FileValue): Written =>
    JSON.stringify(values.find(key)?.raw ?? otherwise) === JSON.stringify(value) ? wrote() : values.assign(key, value);
  const standing = values.find('model.lora_attn_modules')?.raw;
  const asBefore =
    Array.isArray(standing) &&
    standing.length === places.attention.length &&
    places.attention.every((name) => standing.includes(name));
  return together(
    set('model.lora_rank', to.r, 8),
    set('model.lora_alpha', to.loraAlpha, 16),
    set('model.lora_dropout', to.loraDropout, 0),
    asBefore ? wrote() : set('model.lora_attn_modules', [...places.attention]),
    switchTo(detail, 'model.apply_lora_to_mlp', places.mlp),
    switchTo(detail, 'model.apply_lora_to_output', places.head),
  );
}

/** FSDP moves parameters, gradients and states together. */
function writeOffload(detail: TorchtuneDetail, to: Distributed, now: Distributed | undefined): Written | undefined {
  if (!now || to.nodes !== now.nodes || to.processesPerNode !== now.processesPerNode) return undefined;
  if (to.strategy !== now.strategy) return cannot(`this recipe shares the model out by ${now.strategy}`);
  const both = to.offload.includes('optimizer') && to.offload.includes('parameters');
  if (!both && to.offload.length > 0) return cannot('fsdp_cpu_offload moves parameters and optimizer states together');
  if (both && now.strategy !== 'fsdp2' && now.strategy !== 'zero2' && now.strategy !== 'hsdp') {
    return cannot('a recipe for a single device offloads nothing');
  }
  return switchTo(detail, 'fsdp_cpu_offload', both);
}

/** Checkpoints go where the checkpointer says, which mostly is `${output_dir}`. */
function writeOutputDir({ values }: TorchtuneDetail, to: string): Written {
  const own = values.find('checkpointer.output_dir');
  const follows = own === undefined || (own.place.kind === 'file' && own.place.hazard !== undefined);
  const top = values.assign('output_dir', to);
  return follows ? top : together(top, values.assign('checkpointer.output_dir', to));
}
