import type { FloatDType } from '../../core/index.ts';
import type {
  AttnImplementation,
  Distributed,
  GradientCheckpointing,
  Lora,
  LossImpl,
  Method,
  Quantization,
  SettingName,
} from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { orNull, toBoolean, toMap } from '../hf-argparser/convert.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import type { AxolotlDetail } from './read.ts';
import { ATTENTION_SWITCHES, LIGER_PLUGIN } from './settings.ts';
import { wantedDtype, writePrecision } from './write-precision.ts';

/** Settings that are one key each. */
const ONE_KEY: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceEvalBatchSize: 'eval_batch_size',
  maxLength: 'sequence_len',
  packing: 'sample_packing',
  maxGradNorm: 'max_grad_norm',
  dataloaderNumWorkers: 'dataloader_num_workers',
  dataloaderPinMemory: 'dataloader_pin_memory',
  outputDir: 'output_dir',
  saveTotalLimit: 'save_total_limit',
  resumeFromCheckpoint: 'resume_from_checkpoint',
};

/** Writes into the YAML, or into the option of the command that wins over it. */
export function writeAxolotl(
  layer: Layer<AxolotlDetail>,
  setting: SettingName,
  to: unknown,
  stack: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values } = detail;
  const { spec } = stack;
  const key = ONE_KEY[setting];
  switch (setting) {
    case 'maxLength':
      if (spec.objective?.value === 'grpo') return cannot('the length of completions stands in trl:');
      break;
    case 'packing':
      if (to === true && values.find('rl')) return cannot('axolotl does not pack rows for preference training');
      break;
    case 'perDeviceTrainBatchSize':
      // Two searchers must not nest: axolotl's own would shrink the batch it is told, and leave the accumulation.
      return together(values.assign('micro_batch_size', to as FileValue), off(detail, 'auto_find_batch_size'));
    case 'gradientAccumulationSteps':
      return writeAccumulation(detail, to as number);
    case 'attnImplementation':
      return writeAttention(detail, to as AttnImplementation);
    case 'gradientCheckpointing':
      return writeCheckpointing(detail, to as GradientCheckpointing, spec.method?.value !== 'full');
    case 'optim':
      return writeOptimizer(detail, String(to), stack);
    case 'lossImpl':
      return writeLoss(detail, to as LossImpl, spec.objective?.value ?? null);
    case 'dtype':
    case 'mixedPrecision':
      return spec[setting]?.value === to ? wrote() : writePrecision(detail, stack);
    case 'method':
      return spec.method?.value === to ? wrote() : writeMethod(detail, to as Method);
    case 'quantization':
      return writeQuantization(detail, to as Quantization | null, wantedDtype(stack));
    case 'lora':
      return writeLora(detail, to as Lora | null, wantedDtype(stack));
    case 'distributed':
      return writeFsdp(detail, to as Distributed, spec.distributed?.value ?? undefined);
    default:
  }
  return key ? values.assign(key, to as FileValue) : undefined;
}

const isOn = ({ values }: AxolotlDetail, key: string): boolean => {
  const found = values.find(key);
  const read = found && orNull(toBoolean)(found.raw);
  return read?.ok === true && read.value === true;
};

/** Sets a switch unless it stands that way already; absent is off. */
const switchTo = (detail: AxolotlDetail, key: string, to: boolean): Written =>
  isOn(detail, key) === to ? wrote() : detail.values.assign(key, to);

const off = (detail: AxolotlDetail, ...keys: readonly string[]): Written =>
  together(...keys.map((key) => switchTo(detail, key, false)));

/** With `batch_size` accumulation follows by itself; said outright, it takes that key's place. */
function writeAccumulation({ values }: AxolotlDetail, to: number): Written {
  const whole = values.find('batch_size') && !values.find('gradient_accumulation_steps');
  const own = values.assign('gradient_accumulation_steps', to);
  return whole ? together(values.assign('batch_size', null), own) : own;
}

/** Both ways of saying it together stop axolotl, so an older switch goes off. */
function writeAttention(detail: AxolotlDetail, to: AttnImplementation): Written {
  const ring = ['context_parallel_size', 'sequence_parallel_degree'].find(
    (key) => Number(detail.values.find(key)?.raw) > 1,
  );
  if (ring && to !== 'flash_attention_2') return cannot(`${ring} needs flash_attention_2`);
  const switches = ATTENTION_SWITCHES.map(([key]) => key).filter((key) => isOn(detail, key));
  return together(detail.values.assign('attn_implementation', to), off(detail, ...switches));
}

const offloadMode = ({ values }: AxolotlDetail): 'off' | 'hidden_states' | 'other' => {
  const word = String(values.find('activation_offloading')?.raw ?? 'false').toLowerCase();
  return /^(?:false|no|0)$/.test(word) ? 'off' : word === 'hidden_states' ? word : 'other';
};

/**
 * `hidden_states` moves what recomputing keeps, with and without an adapter; the other modes do so in full training only, and
 * take the place of recomputing beside an adapter.
 */
function writeCheckpointing(detail: AxolotlDetail, to: GradientCheckpointing, hasAdapter: boolean): Written {
  const { values } = detail;
  if (to.everyNLayers !== 1) return cannot('axolotl checkpoints every layer or none');
  if (!to.enabled && to.offload && !hasAdapter) return cannot('axolotl offloads only with gradient_checkpointing');
  const now = offloadMode(detail);
  const fitting = to.enabled && !(now === 'other' && !hasAdapter) ? 'hidden_states' : 'other';
  const wanted = to.offload ? fitting : 'off';
  const value = wanted === 'off' ? false : wanted === 'other' ? true : wanted;
  const offload = wanted === now ? wrote() : values.assign('activation_offloading', value);
  const on = values.assign('gradient_checkpointing', to.enabled || to.offload);
  if (!to.enabled) return together(on, offload);
  if (wanted === 'other') {
    return to.useReentrant ? cannot('activation_offloading recomputes without re-entry') : together(on, offload);
  }
  const otherwise = wanted === 'off' && values.find('rl', 'unfrozen_parameters') === undefined;
  return together(on, offload, writeReentrant(detail, to.useReentrant, otherwise));
}

/** `otherwise`: what holds where nothing is said. */
function writeReentrant({ values, path }: AxolotlDetail, to: boolean, otherwise: boolean): Written {
  const kwargs = values.find('gradient_checkpointing_kwargs');
  const before = kwargs ? orNull(toMap)(kwargs.raw) : undefined;
  if (before && !before.ok) return cannot('gradient_checkpointing_kwargs cannot be read, so nothing is added to it');
  const stands = before?.value?.use_reentrant;
  if ((typeof stands === 'boolean' ? stands : otherwise) === to) return wrote();
  if (to && values.find('unfrozen_parameters')) {
    return cannot('re-entrant checkpointing does not go with unfrozen_parameters');
  }
  if (kwargs?.place.kind === 'flag') return cannot('gradient_checkpointing_kwargs stands in the command');
  return wrote({ kind: 'file', path, keyPath: ['gradient_checkpointing_kwargs', 'use_reentrant'], value: to });
}

/**
 * bitsandbytes cannot work on the shards of FSDP 2, and no 8-bit optimizer with the offload of FSDP 1. Source:
 * schemas/validation.py `check_fsdp2_w_8bit_optimizer`, `check_fsdp_offload_w_8bit_optimizer`.
 */
function writeOptimizer(detail: AxolotlDetail, to: string, { spec }: StackView): Written {
  const shared = spec.distributed?.value;
  const eight = detail.fsdp && /8bit/.test(to);
  const refused =
    shared?.strategy === 'fsdp2' ? !to.startsWith('adamw_torch') : (shared?.offload.includes('parameters') ?? false);
  return eight && refused
    ? cannot(`axolotl does not take ${to} with this FSDP setup`)
    : detail.values.assign('optimizer', to);
}

function writeLoss(detail: AxolotlDetail, to: LossImpl, objective: string | null): Written {
  const { values, plugins } = detail;
  if (to === 'chunked') return cannot('the chunked loss of axolotl still holds the logits of all tokens');
  if (objective !== 'sft' && objective !== 'clm') {
    return to === 'full' ? wrote() : cannot('the fused loss of axolotl is for supervised training');
  }
  const cce = plugins.find((name) => name.endsWith('CutCrossEntropyPlugin'));
  if (to === 'full') {
    return together(
      off(detail, 'liger_fused_linear_cross_entropy'),
      cce ? values.assign('cut_cross_entropy', false) : wrote(),
    );
  }
  if (cce) return values.find('cut_cross_entropy') ? values.assign('cut_cross_entropy', true) : wrote();
  const liger = plugins.some((name) => name.endsWith('LigerPlugin'));
  return together(
    liger ? wrote() : values.assign('plugins', [...plugins, LIGER_PLUGIN]),
    values.assign('liger_fused_linear_cross_entropy', true),
    off(detail, 'chunked_cross_entropy', 'liger_cross_entropy', 'cut_cross_entropy'),
  );
}

const adapterOf = ({ values }: AxolotlDetail): FileValue => values.find('adapter')?.raw ?? null;

const writeAdapter = (detail: AxolotlDetail, to: FileValue): Written =>
  adapterOf(detail) === to ? wrote() : detail.values.assign('adapter', to);

function writeMethod(detail: AxolotlDetail, to: Method): Written {
  const unquantized = off(detail, 'load_in_4bit', 'load_in_8bit');
  // An adapter would turn recomputing off beside any other way of offloading.
  const keepsRecomputing =
    adapterOf(detail) === null && offloadMode(detail) === 'other'
      ? detail.values.assign('activation_offloading', 'hidden_states')
      : wrote();
  switch (to) {
    case 'full':
      return together(writeAdapter(detail, null), unquantized);
    case 'lora':
      return together(writeAdapter(detail, 'lora'), unquantized, off(detail, 'peft_use_dora'), keepsRecomputing);
    case 'dora':
      return together(
        writeAdapter(detail, 'lora'),
        unquantized,
        switchTo(detail, 'peft_use_dora', true),
        keepsRecomputing,
      );
    case 'qlora':
      return together(fourBits(detail), keepsRecomputing);
    default:
      return cannot(`axolotl has no ${to}`);
  }
}

const fourBits = (detail: AxolotlDetail): Written =>
  together(writeAdapter(detail, 'qlora'), switchTo(detail, 'load_in_4bit', true), off(detail, 'load_in_8bit'));

/** The compute dtype is that of the weights; double quantization is always on. */
function writeQuantization(detail: AxolotlDetail, to: Quantization | null, dtype: FloatDType | undefined): Written {
  const adapter = adapterOf(detail);
  if (to === null) {
    return together(
      off(detail, 'load_in_4bit', 'load_in_8bit'),
      adapter === 'qlora' ? writeAdapter(detail, 'lora') : wrote(),
    );
  }
  if (to.upcastRestToFp32) return cannot('axolotl takes what is not quantised back to 16 bits');
  if (to.computeDtype !== dtype) return cannot(`a quantised model computes in ${dtype} in this launch`);
  if (detail.values.find('model_quantization_config')) return cannot('model_quantization_config is set');
  if (to.bits === 8) {
    const kernels = ['lora_mlp_kernel', 'lora_qkv_kernel', 'lora_o_kernel'].filter((key) => isOn(detail, key));
    return together(
      writeAdapter(detail, 'lora'),
      switchTo(detail, 'load_in_8bit', true),
      off(detail, 'load_in_4bit', ...kernels),
    );
  }
  if (to.quantType !== 'nf4' || !to.doubleQuant) return cannot('axolotl quantises to nf4 with double quantization');
  return fourBits(detail);
}

function writeLora(detail: AxolotlDetail, to: Lora | null, dtype: FloatDType | undefined): Written {
  if (to === null) return writeAdapter(detail, null);
  const { values } = detail;
  const standing = values.find('peft_autocast_adapter_dtype');
  const now = detail.fsdp || (standing && !isOn(detail, 'peft_autocast_adapter_dtype')) ? dtype : 'fp32';
  const wanted = to.adapterDtype;
  if (wanted !== now && (detail.fsdp || (wanted !== 'fp32' && wanted !== dtype))) {
    return cannot(`adapters are held in ${now} in this launch`);
  }
  const targets = to.targetModules;
  const linear = isOn(detail, 'lora_target_linear');
  if (targets === 'default' && (linear || values.find('lora_target_modules'))) {
    return cannot('lora_target_modules would have to be taken out of the launch');
  }
  const same = (key: string, value: FileValue): boolean =>
    JSON.stringify(values.find(key)?.raw) === JSON.stringify(value);
  const number = (key: string, value: number): Written => (same(key, value) ? wrote() : values.assign(key, value));
  const modules = targets === 'default' || targets === 'all-linear' ? undefined : [...targets];
  const saved = values.find('lora_modules_to_save');
  return together(
    number('lora_r', to.r),
    number('lora_alpha', to.loraAlpha),
    values.find('lora_dropout') || to.loraDropout !== 0 ? number('lora_dropout', to.loraDropout) : wrote(),
    targets === 'all-linear' ? switchTo(detail, 'lora_target_linear', true) : off(detail, 'lora_target_linear'),
    modules && !same('lora_target_modules', modules) ? values.assign('lora_target_modules', modules) : wrote(),
    wanted === now ? wrote() : values.assign('peft_autocast_adapter_dtype', wanted === 'fp32'),
    saved || to.modulesToSave.length > 0
      ? same('lora_modules_to_save', [...to.modulesToSave])
        ? wrote()
        : values.assign('lora_modules_to_save', to.modulesToSave.length > 0 ? [...to.modulesToSave] : null)
      : wrote(),
  );
}

/** FSDP's offload; all else about who holds what is the engine's or the launcher's. */
function writeFsdp(detail: AxolotlDetail, to: Distributed, now: Distributed | undefined): Written | undefined {
  if (!detail.fsdp || !now) return undefined;
  if (to.nodes !== now.nodes || to.processesPerNode !== now.processesPerNode) return undefined;
  if (to.strategy !== now.strategy)
    return cannot(`a change from ${now.strategy} to ${to.strategy} needs another FSDP setup`);
  const both = to.offload.includes('optimizer') && to.offload.includes('parameters');
  if (!both && to.offload.length > 0)
    return cannot('FSDP offloads parameters and optimizer states together or not at all');
  const config = detail.values.find('fsdp_config');
  const words = detail.values.find('fsdp');
  if (!both && JSON.stringify(words?.raw ?? null).includes('offload'))
    return cannot('fsdp: names offload, which would have to go');
  if (config?.place.kind === 'flag') return cannot('fsdp_config stands in the command');
  const keys = (config?.raw ?? {}) as Record<string, unknown>;
  const key = 'fsdp_offload_params' in keys ? 'fsdp_offload_params' : 'offload_params';
  return wrote({ kind: 'file', path: detail.path, keyPath: ['fsdp_config', key], value: both });
}
