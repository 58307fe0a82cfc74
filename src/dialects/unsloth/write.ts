import type { GradientCheckpointing, Lora, Method, Quantization, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import type { UnslothDetail } from './read.ts';

const ONE_FLAG: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceTrainBatchSize: 'per_device_train_batch_size',
  perDeviceEvalBatchSize: 'per_device_eval_batch_size',
  gradientAccumulationSteps: 'gradient_accumulation_steps',
  maxLength: 'max_seq_length',
  optim: 'optim',
  outputDir: 'output_dir',
};

/** Writes flags of unsloth-cli.py; a script of one's own is a program and stays as it is. */
export function writeUnsloth(
  layer: Layer<UnslothDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values } = detail;
  if (JSON.stringify(spec[setting]?.value) === JSON.stringify(to)) return wrote();
  if (detail.inScript) return cannot('its settings stand in a script, which is not rewritten');
  const flag = ONE_FLAG[setting];
  if (flag) return values.assign(flag, to as FileValue);
  switch (setting) {
    case 'packing':
      return writeSwitch(detail, 'packing', to as boolean);
    case 'method':
      return writeMethod(detail, to as Method);
    case 'quantization':
      return writeQuantization(detail, to as Quantization | null);
    case 'gradientCheckpointing':
      return writeCheckpointing(detail, to as GradientCheckpointing);
    case 'lora':
      return writeLora(detail, to as Lora | null);
    case 'lossImpl':
    case 'attnImplementation':
    case 'mixedPrecision':
    case 'maxGradNorm':
      return cannot('unsloth decides this itself');
    case 'resumeFromCheckpoint':
      return cannot('unsloth calls train() without a checkpoint to go on from');
    default:
      return undefined;
  }
}

/** A switch has no value: the word is there or it is not. */
function writeSwitch({ values, appendAt }: UnslothDetail, key: string, to: boolean): Written {
  const found = values.find(key);
  if ((found !== undefined) === to) return wrote();
  if (to) return wrote({ kind: 'insert', at: appendAt, key, tokens: [`--${key}`] });
  return found?.place.kind === 'flag'
    ? wrote({ kind: 'remove', index: found.place.flag.index })
    : cannot(`${key} cannot be taken out`);
}

function writeMethod(detail: UnslothDetail, to: Method): Written {
  if (to === 'lora' || to === 'qlora') return writeSwitch(detail, 'load_in_4bit', to === 'qlora');
  return cannot('unsloth-cli.py trains adapters only');
}

function writeQuantization(detail: UnslothDetail, to: Quantization | null): Written {
  if (to === null) return writeSwitch(detail, 'load_in_4bit', false);
  const usual =
    to.bits === 4 && to.quantType === 'nf4' && to.doubleQuant && to.computeDtype === 'bf16' && !to.upcastRestToFp32;
  return usual
    ? writeSwitch(detail, 'load_in_4bit', true)
    : cannot('unsloth quantises to nf4 with quantised scales, and computes in bf16');
}

function writeCheckpointing({ values }: UnslothDetail, to: GradientCheckpointing): Written {
  if (to.everyNLayers !== 1 || (to.enabled && !to.useReentrant))
    return cannot('unsloth recomputes every layer, with re-entry');
  if (!to.enabled && (to.offload || to.useReentrant)) return cannot('unsloth offloads only what checkpointing keeps');
  return values.assign('use_gradient_checkpointing', to.offload ? 'unsloth' : to.enabled ? 'True' : 'False');
}

function writeLora({ values }: UnslothDetail, to: Lora | null): Written {
  if (to === null) return cannot('unsloth-cli.py trains adapters only');
  if (to.targetModules !== 'all-linear' || to.modulesToSave.length > 0)
    return cannot('unsloth-cli.py adapts all linear layers');
  if (to.adapterDtype !== 'fp32') return cannot('adapters are kept in fp32');
  return together(
    values.assign('r', to.r),
    values.assign('lora_alpha', to.loraAlpha),
    values.assign('lora_dropout', to.loraDropout),
  );
}
