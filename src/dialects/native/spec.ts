import type { Origin, Setting, TrainingSpec, TrainingValues } from '../../spec/index.ts';
import type { NativeValues } from './schema.ts';

/** Where a key stands; undefined: not given. */
export type OriginOf = (key: string) => Origin | undefined;

const DEFAULT: Origin = { kind: 'default', tool: 'snug', version: '0.1' };

/** Quantised methods say so by their name alone. */
const QUANTIZED: TrainingValues['quantization'] = {
  bits: 4,
  quantType: 'nf4',
  doubleQuant: true,
  computeDtype: 'bf16',
  upcastRestToFp32: true,
};

/**
 * The spec of a native config: what it says, and the format's defaults. `launched`: how many processes the command itself
 * starts, where the config does not say it.
 */
export function nativeSpec(
  values: NativeValues,
  originOf: OriginOf,
  launched: Setting<TrainingValues['distributed']> | undefined,
): TrainingSpec {
  const say = <T>(key: keyof NativeValues, value: T | undefined, otherwise: T): Setting<T> => {
    const origin = originOf(key);
    return value === undefined || !origin ? { value: otherwise, origin: DEFAULT } : { value, origin };
  };
  const only = <T>(key: keyof NativeValues, value: T | undefined): Setting<T> | undefined => {
    const origin = originOf(key);
    return value === undefined || !origin ? undefined : { value, origin };
  };
  const method = say<TrainingValues['method']>('method', values.method, 'full');
  const usesLora = ['lora', 'qlora', 'dora'].includes(method.value!) || values.lora !== undefined;
  const spec: { -readonly [K in keyof TrainingSpec]: TrainingSpec[K] | undefined } = {
    modelNameOrPath: only('model', values.model),
    modelConfig: only('model_config', values.model_config),
    method,
    objective: say('objective', values.objective, 'sft'),
    dtype: say('dtype', values.dtype, 'bf16'),
    mixedPrecision: say('mixed_precision', values.mixed_precision, 'no'),
    perDeviceTrainBatchSize: only('per_device_train_batch_size', values.per_device_train_batch_size),
    perDeviceEvalBatchSize: say('per_device_eval_batch_size', values.per_device_eval_batch_size, 8),
    eval: say('eval', values.eval, false),
    gradientAccumulationSteps: say('gradient_accumulation_steps', values.gradient_accumulation_steps, 1),
    maxLength: only('max_length', values.max_length),
    maxTargetLength: only<number | null>('max_target_length', values.max_target_length),
    packing: say('packing', values.packing, false),
    paddingFree: say('padding_free', values.padding_free, false),
    attentionMask: say('attention_mask', values.attention_mask, false),
    attnImplementation: say('attn_implementation', values.attn_implementation, 'sdpa'),
    gradientCheckpointing: say('gradient_checkpointing', checkpointingOf(values), {
      enabled: false,
      useReentrant: false,
      everyNLayers: 1,
      offload: false,
    }),
    optim: say('optim', values.optim, 'adamw_torch_fused'),
    maxGradNorm: say('max_grad_norm', values.max_grad_norm, 1),
    quantization: quantizationSetting(values, say, method),
    lora: usesLora ? say('lora', loraOf(values), loraOf({ lora: LORA })!) : undefined,
    ia3: method.value === 'ia3' || values.ia3 ? say('ia3', ia3Of(values), ia3Of({ ia3: IA3 })!) : undefined,
    promptTuning: promptTuningSetting(values, say, method),
    generation: generationSetting(values, say),
    precomputeRefLogProbs: only('precompute_ref_log_probs', values.precompute_ref_log_probs),
    optimArgs: only('optim_args', values.optim_args),
    optimTargetModules: only('optim_target_modules', projectedModules(values)),
    labelSmoothingFactor: only('label_smoothing_factor', values.label_smoothing_factor),
    neftuneNoiseAlpha: only('neftune_noise_alpha', values.neftune_noise_alpha),
    torchCompile: only('torch_compile', values.torch_compile),
    distributed: only('distributed', distributedOf(values)) ?? launched ?? { value: ONE_PROCESS, origin: DEFAULT },
    dataloaderNumWorkers: say('dataloader_num_workers', values.dataloader_num_workers, 0),
    dataloaderPinMemory: say('dataloader_pin_memory', values.dataloader_pin_memory, true),
    lossImpl: say('loss_impl', values.loss_impl, 'full'),
    fusedKernels: only('fused_kernels', values.fused_kernels),
    optimizerInBackward: only('optimizer_in_backward', values.optimizer_in_backward),
    syncsEachMicroBatch: only('syncs_each_micro_batch', values.syncs_each_micro_batch),
    outputDir: only('output_dir', values.output_dir),
    saveTotalLimit: only<number | null>('save_total_limit', values.save_total_limit),
    versions: only('versions', versionsOf(values)),
  };
  return Object.fromEntries(Object.entries(spec).filter(([, setting]) => setting !== undefined)) as TrainingSpec;
}

type Say = <T>(key: keyof NativeValues, value: T | undefined, otherwise: T) => Setting<T>;

function quantizationSetting(
  values: NativeValues,
  say: Say,
  method: Setting<TrainingValues['method']>,
): Setting<TrainingValues['quantization']> {
  const given = quantizationOf(values);
  if (given !== undefined || method.value !== 'qlora') return say('quantization', given, null);
  return { value: QUANTIZED, origin: method.origin };
}

function promptTuningSetting(
  { prompt_tuning: given }: NativeValues,
  say: Say,
  { value: method }: Setting<TrainingValues['method']>,
): Setting<TrainingValues['promptTuning']> | undefined {
  if (!given && method !== 'prompt_tuning' && method !== 'prefix_tuning') return undefined;
  const value = given && {
    numVirtualTokens: given.num_virtual_tokens,
    projectionHiddenSize: given.projection_hidden_size,
  };
  return say('prompt_tuning', value, { numVirtualTokens: 20, projectionHiddenSize: undefined });
}

function generationSetting(
  { generation: given, objective, max_length: maxLength }: NativeValues,
  say: Say,
): Setting<TrainingValues['generation']> | undefined {
  if (!given && objective !== 'grpo' && objective !== 'rloo') return undefined;
  const value = given && {
    numGenerations: given.num_generations,
    maxPromptLength: given.max_prompt_length ?? Math.max(1, (maxLength ?? 1024) - given.max_completion_length),
    maxCompletionLength: given.max_completion_length,
    engine: given.engine,
    vllmGpuMemoryUtilization: given.vllm_gpu_memory_utilization,
    vllmEnableSleepMode: given.vllm_enable_sleep_mode,
    beta: given.beta,
  };
  return say('generation', value, { ...GENERATION, ...splitRow(maxLength) });
}

/** trl 1.13 GRPOConfig. */
const GENERATION: TrainingValues['generation'] = {
  numGenerations: 8,
  maxPromptLength: 512,
  maxCompletionLength: 512,
  engine: 'transformers',
  vllmGpuMemoryUtilization: 0.3,
  vllmEnableSleepMode: false,
  beta: 0,
};

/** A row is a prompt and a completion: without more said, half of it each. */
function splitRow(maxLength: number | undefined): Partial<TrainingValues['generation']> {
  if (maxLength === undefined) return {};
  const maxPromptLength = Math.floor(maxLength / 2);
  return { maxPromptLength, maxCompletionLength: maxLength - maxPromptLength };
}

function projectedModules({
  optim_target_modules: given,
}: NativeValues): TrainingValues['optimTargetModules'] | undefined {
  if (given === undefined || typeof given !== 'string') return given;
  return given.replaceAll('_', '-') === 'all-linear' ? 'all-linear' : [given];
}

const ONE_PROCESS: TrainingValues['distributed'] = { nodes: 1, processesPerNode: 1, strategy: 'ddp', offload: [] };
const LORA = {
  r: 16,
  lora_alpha: 32,
  lora_dropout: 0,
  target_modules: 'all-linear',
  adapter_dtype: 'fp32',
  modules_to_save: [],
} as const;
const IA3 = {
  target_modules: ['k_proj', 'v_proj', 'down_proj'],
  feedforward_modules: ['down_proj'],
  adapter_dtype: 'fp32',
} as const;

function checkpointingOf({
  gradient_checkpointing: given,
}: NativeValues): TrainingValues['gradientCheckpointing'] | undefined {
  return (
    given && {
      enabled: given.enabled,
      useReentrant: given.use_reentrant,
      everyNLayers: given.every_n_layers,
      offload: given.offload,
    }
  );
}

function quantizationOf({ quantization: given }: NativeValues): TrainingValues['quantization'] | undefined {
  return (
    given && {
      bits: given.bits,
      quantType: given.quant_type ?? (given.bits === 8 ? 'int8' : 'nf4'),
      // Only the 4-bit format has a second level of scales.
      doubleQuant: given.bits === 4 && given.double_quant,
      computeDtype: given.compute_dtype,
      upcastRestToFp32: given.upcast_rest_to_fp32,
    }
  );
}

type LoraValues = { readonly lora?: DeepReadonly<NativeValues['lora']> };
type Ia3Values = { readonly ia3?: DeepReadonly<NativeValues['ia3']> };
type DeepReadonly<T> = T extends (infer Item)[] ? readonly Item[] : { readonly [K in keyof T]: DeepReadonly<T[K]> };

function loraOf({ lora: given }: LoraValues): NonNullable<TrainingValues['lora']> | undefined {
  if (!given) return undefined;
  const targets = given.target_modules;
  return {
    r: given.r,
    loraAlpha: given.lora_alpha,
    loraDropout: given.lora_dropout,
    targetModules:
      targets === 'all-linear' || targets === 'default' ? targets : typeof targets === 'string' ? [targets] : targets,
    adapterDtype: given.adapter_dtype,
    modulesToSave: given.modules_to_save,
  };
}

function ia3Of({ ia3: given }: Ia3Values): NonNullable<TrainingValues['ia3']> | undefined {
  return (
    given && {
      targetModules: given.target_modules,
      feedforwardModules: given.feedforward_modules,
      adapterDtype: given.adapter_dtype,
    }
  );
}

function distributedOf({ distributed: given }: NativeValues): TrainingValues['distributed'] | undefined {
  return (
    given && {
      nodes: given.nodes,
      processesPerNode: given.processes_per_node,
      strategy: given.strategy,
      offload: given.offload,
    }
  );
}

const LATEST: TrainingValues['versions'] = { torch: '2.13', transformers: '5.17', peft: '0.21', trl: '1.13' };

function versionsOf({ versions: given }: NativeValues): TrainingValues['versions'] | undefined {
  if (!given) return undefined;
  const { mamba_ssm: mambaSsm, causal_conv1d: causalConv1d, ...rest } = given;
  const named = Object.entries({ ...rest, mambaSsm, causalConv1d }).filter(([, version]) => version !== undefined);
  return { ...LATEST, ...Object.fromEntries(named) };
}
