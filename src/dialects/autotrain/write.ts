import type {
  AttnImplementation,
  GradientCheckpointing,
  Lora,
  Method,
  Quantization,
  SettingName,
} from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import type { AutotrainDetail } from './read.ts';

/** Settings that are one flag each. */
const FLAGS: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceTrainBatchSize: 'batch_size',
  gradientAccumulationSteps: 'gradient_accumulation',
  maxLength: 'block_size',
  optim: 'optimizer',
  maxGradNorm: 'max_grad_norm',
  saveTotalLimit: 'save_total_limit',
  outputDir: 'project_name',
};

export function writeAutotrain(
  { reading: { detail } }: Layer<AutotrainDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { values, switchTo } = detail.launch;
  const flag = FLAGS[setting];
  if (flag) return values.assign(flag, to as FileValue);
  switch (setting) {
    case 'perDeviceEvalBatchSize':
      return cannot('autotrain evaluates with the batch of training');
    case 'mixedPrecision':
      return to === 'no'
        ? cannot('autocast is off only where --mixed-precision is not given')
        : values.assign('mixed_precision', to as string);
    case 'attnImplementation':
      return writeAttention(to as AttnImplementation, switchTo);
    case 'gradientCheckpointing':
      return writeCheckpointing(to as GradientCheckpointing, spec.quantization !== undefined, switchTo);
    case 'method':
      return writeMethod(to as Method, detail);
    case 'quantization':
      return writeQuantization(to as Quantization | null, detail);
    case 'lora':
      return writeLora(to as Lora | null, detail);
    default:
      return undefined;
  }
}

type SwitchTo = AutotrainDetail['launch']['switchTo'];

const writeAttention = (to: AttnImplementation, switchTo: SwitchTo): Written =>
  to === 'sdpa' || to === 'flash_attention_2'
    ? switchTo(to === 'flash_attention_2', 'use_flash_attention_2')
    : cannot(`autotrain has no ${to}`);

function writeCheckpointing(to: GradientCheckpointing, quantized: boolean, switchTo: SwitchTo): Written {
  if (to.offload || to.everyNLayers !== 1) return cannot('autotrain recomputes every layer or none');
  if (to.enabled && to.useReentrant !== quantized)
    return cannot('autotrain recomputes with re-entry just where the base is quantised');
  return switchTo(!to.enabled, 'disable_gradient_checkpointing');
}

function writeMethod(to: Method, { launch: { values, switchTo } }: AutotrainDetail): Written {
  if (to === 'full') return switchTo(false, 'peft');
  if (to !== 'lora' && to !== 'qlora') return cannot(`autotrain has no ${to}`);
  const bits = to === 'qlora' ? 'int4' : 'none';
  const stands = values.find('quantization')?.raw ?? 'int4';
  return together(switchTo(true, 'peft'), stands === bits ? wrote() : values.assign('quantization', bits));
}

function writeQuantization(to: Quantization | null, { launch: { values } }: AutotrainDetail): Written {
  if (to === null) return values.assign('quantization', 'none');
  if (
    to.doubleQuant ||
    to.computeDtype !== 'fp16' ||
    !to.upcastRestToFp32 ||
    (to.bits === 4 && to.quantType !== 'nf4')
  ) {
    return cannot('autotrain quantises to NF4 once, computes in fp16 and casts the rest up');
  }
  const bits = `int${to.bits}`;
  return (values.find('quantization')?.raw ?? 'int4') === bits ? wrote() : values.assign('quantization', bits);
}

function writeLora(to: Lora | null, { launch: { values, switchTo } }: AutotrainDetail): Written {
  if (to === null) return switchTo(false, 'peft');
  if (to.modulesToSave.length > 0) return cannot('autotrain trains no other modules beside adapters');
  if (to.targetModules === 'default') return cannot("autotrain does not take PEFT's list for the architecture");
  if (to.adapterDtype !== 'fp32') return cannot('adapters are kept in fp32');
  return together(
    values.assign('lora_r', to.r),
    values.assign('lora_alpha', to.loraAlpha),
    values.assign('lora_dropout', to.loraDropout),
    values.assign('target_modules', to.targetModules === 'all-linear' ? 'all-linear' : to.targetModules.join(',')),
  );
}
