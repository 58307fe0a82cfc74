import type { AttnImplementation, GradientCheckpointing, Lora, MixedPrecision, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { writeAccumulation, writeMicroBatch } from '../global-batch.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import type { FoundryDetail } from './read.ts';

/** Settings that are one key each. */
const KEYS: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceEvalBatchSize: 'device_eval_batch_size',
  dataloaderNumWorkers: 'train_loader.num_workers',
  dataloaderPinMemory: 'train_loader.pin_memory',
  outputDir: 'save_folder',
  saveTotalLimit: 'save_num_checkpoints_to_keep',
  resumeFromCheckpoint: 'load_path',
};

/** Writes into the file, or as a word behind it where the file's own text must stay (an interpolation). */
export function writeFoundry(
  { reading: { detail } }: Layer<FoundryDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { values, batch } = detail;
  const set = (key: string, value: FileValue): Written => values.assign(key, value);
  const micro = (rows: number): Written => set('device_train_microbatch_size', rows);
  const searched = spec.perDeviceTrainBatchSize?.value === null;
  const key = KEYS[setting];
  if (key) return set(key, to as FileValue);
  switch (setting) {
    case 'perDeviceTrainBatchSize':
      return writeMicroBatch(batch, to as number, micro);
    case 'gradientAccumulationSteps':
      return searched
        ? cannot('the micro batch is searched for, and accumulation follows')
        : writeAccumulation(batch, to as number, micro);
    case 'maxLength':
      return writeLength(detail, to as number);
    case 'mixedPrecision':
      return set('precision', { no: 'fp32', bf16: 'amp_bf16', fp16: 'amp_fp16' }[to as MixedPrecision]);
    case 'maxGradNorm':
      return values.find('algorithms.gradient_clipping.clipping_threshold')
        ? set('algorithms.gradient_clipping.clipping_threshold', to as number)
        : cannot('the config has no gradient_clipping whose threshold could be set');
    case 'gradientCheckpointing':
      return detail.sharded
        ? writeCheckpointing(to as GradientCheckpointing, set)
        : cannot('activations are checkpointed by FSDP alone, and FSDP is not on');
    case 'attnImplementation':
      return writeAttention(detail, to as AttnImplementation);
    case 'lora':
      return spec.lora && to ? writeLora(to as Lora, set) : cannot('adapters are described in model.peft_config');
    default:
      return undefined;
  }
}

type SetKey = (key: string, value: FileValue) => Written;

/** Places that say the length beside `max_seq_len`. */
const LENGTHS = [
  'tokenizer.kwargs.model_max_length',
  'train_loader.dataset.max_seq_len',
  'eval_loader.dataset.max_seq_len',
  'model.max_seq_len',
  'model.config_overrides.max_seq_len',
];

/** One variable that all places are filled in from, or all places. */
function writeLength({ values, config }: FoundryDetail, to: number): Written {
  const raw = config.keys.get('max_seq_len')?.value;
  const variable = typeof raw === 'string' ? /^\$\{([\w.]+)\}$/.exec(raw)?.[1] : undefined;
  if (variable !== undefined && values.find('max_seq_len')?.place.kind === 'file') return values.assign(variable, to);
  const others = LENGTHS.filter((key) => values.find(key));
  return together(...['max_seq_len', ...others].map((key) => values.assign(key, to)));
}

function writeCheckpointing(
  { enabled, useReentrant, everyNLayers, offload }: GradientCheckpointing,
  set: SetKey,
): Written {
  if (everyNLayers !== 1) return cannot('FSDP checkpoints every layer or none');
  const parts = [
    set('fsdp_config.activation_checkpointing', enabled),
    set('fsdp_config.activation_cpu_offload', offload),
  ];
  return together(...parts, enabled ? set('fsdp_config.activation_checkpointing_reentrant', useReentrant) : wrote());
}

function writeAttention({ values }: FoundryDetail, to: AttnImplementation): Written {
  if (values.find('model.name')?.raw === 'mpt_causal_lm') {
    const impl = to === 'eager' ? 'torch' : to === 'flash_attention_2' ? 'flash' : undefined;
    return impl ? values.assign('model.attn_config.attn_impl', impl) : cannot(`MPT has no ${to}`);
  }
  if (values.find('model.config_overrides.attn_config.attn_impl')) return cannot('config_overrides says the attention');
  const older = values.find('model.use_flash_attention_2');
  return together(
    older ? values.assign('model.use_flash_attention_2', to === 'flash_attention_2') : wrote(),
    older && to === 'flash_attention_2' ? wrote() : values.assign('model.attn_implementation', to),
  );
}

function writeLora(to: Lora, set: SetKey): Written {
  if (to.adapterDtype !== 'fp32') return cannot('adapters are kept in fp32');
  if (to.targetModules === 'default') return cannot('the targets are named in peft_config');
  const key = (name: string): string => `model.peft_config.${name}`;
  return together(
    set(key('r'), to.r),
    set(key('lora_alpha'), to.loraAlpha),
    set(key('lora_dropout'), to.loraDropout),
    set(key('target_modules'), to.targetModules),
    to.modulesToSave.length > 0 ? set(key('modules_to_save'), to.modulesToSave) : wrote(),
  );
}
