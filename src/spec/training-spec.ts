import type { FloatDType } from '../core/index.ts';
import type { Origin } from './origin.ts';

export type Objective =
  | 'sft'
  | 'clm'
  | 'dpo'
  | 'kto'
  | 'orpo'
  | 'reward'
  | 'grpo'
  | 'rloo'
  | 'classification'
  | 'seq2seq';
export type Method = 'full' | 'lora' | 'qlora' | 'dora' | 'ia3' | 'prompt_tuning' | 'prefix_tuning';
export type AttnImplementation = 'eager' | 'sdpa' | 'flash_attention_2' | 'flash_attention_3' | 'flex_attention';
export type MixedPrecision = 'no' | 'bf16' | 'fp16';
/**
 * full: logits of every token; chunked: blocks of tokens at a time (TRL); fused: Liger or cut cross-entropy, no logits at all;
 * fused_logits: one kernel over whole logits that writes their gradient in place (Unsloth's, Liger's `cross_entropy`);
 * chunked_logits: fp32 copies a chunk of tokens at a time, while the log-probabilities of all tokens are kept (torchtune, litgpt).
 */
export type LossImpl = 'full' | 'chunked' | 'fused' | 'fused_logits' | 'chunked_logits';
/** Modules that one kernel stands in for: norms, rotary embedding, gated product, LoRA layers. */
export type FusedKernel = 'norm' | 'rotary' | 'gate' | 'lora';
/** Whose modules the model is made of, where they are not those of transformers. */
export type OwnModules = 'litgpt';
export type Strategy = 'none' | 'dp' | 'ddp' | 'zero1' | 'zero2' | 'zero3' | 'fsdp1' | 'fsdp2' | 'hsdp';
export type OffloadTarget = 'optimizer' | 'parameters' | 'activations';

export interface GradientCheckpointing {
  readonly enabled: boolean;
  readonly useReentrant: boolean;
  /** 1: every layer; n: one boundary kept per n layers. */
  readonly everyNLayers: number;
  /** Saved boundary activations live in pinned host RAM. */
  readonly offload: boolean;
}

export interface Quantization {
  readonly bits: 4 | 8;
  /** `gptq` and `awq` only as a checkpoint brings them. */
  readonly quantType: 'nf4' | 'fp4' | 'int8' | 'gptq' | 'awq';
  /** Weights of one row that share a scale in gptq and awq; −1: all. */
  readonly groupSize?: number;
  readonly doubleQuant: boolean;
  readonly computeDtype: FloatDType;
  /** peft.prepare_model_for_kbit_training: every 16-bit parameter that is not quantised becomes fp32. */
  readonly upcastRestToFp32: boolean;
}

export interface Lora {
  readonly r: number;
  readonly loraAlpha: number;
  readonly loraDropout: number;
  /** `all-linear`: every linear layer but the head; `default`: PEFT's list for the architecture; else module name suffixes. */
  readonly targetModules: 'all-linear' | 'default' | readonly string[];
  readonly adapterDtype: FloatDType;
  readonly modulesToSave: readonly string[];
}

export interface Ia3 {
  readonly targetModules: readonly string[];
  readonly feedforwardModules: readonly string[];
  readonly adapterDtype: FloatDType;
}

/** PEFT prompt and prefix tuning. */
export interface PromptTuning {
  readonly numVirtualTokens: number;
  /** Prefix tuning computes its keys and values by a small network of this width; undefined: they are parameters. */
  readonly projectionHiddenSize: number | undefined;
}

/** How GRPO and RLOO make their completions. */
export interface Generation {
  readonly numGenerations: number;
  /** Tokens. */
  readonly maxPromptLength: number;
  readonly maxCompletionLength: number;
  /** `vllm_colocate`: in the same process; `vllm_server`: on other cards. */
  readonly engine: 'transformers' | 'vllm_colocate' | 'vllm_server';
  /** Share of the whole card that a colocated vLLM takes. */
  readonly vllmGpuMemoryUtilization: number;
  /** vLLM gives its memory back while the step runs. */
  readonly vllmEnableSleepMode: boolean;
  /** KL coefficient; above 0 a reference model is needed. */
  readonly beta: number;
}

export interface Distributed {
  readonly nodes: number;
  readonly processesPerNode: number;
  readonly strategy: Strategy;
  readonly offload: readonly OffloadTarget[];
}

/** Versions that decide defaults and what the loss copies, `2.13`, `5.17`. */
export interface Versions {
  readonly torch: string;
  readonly transformers: string;
  readonly peft: string;
  readonly trl: string;
  /** Not said: a current one. */
  readonly bitsandbytes?: string;
  /** Packages with kernels that transformers takes where they are installed; not said: they are not. */
  readonly fla?: string;
  readonly mambaSsm?: string;
  readonly causalConv1d?: string;
}

/**
 * What a run trains and how: every setting that bears on memory, in the field's words. In files and JSON each name is the
 * snake_case form of the one here.
 */
export interface TrainingValues {
  /** Id or folder. */
  modelNameOrPath: string;
  /** Contents of a config.json given in place of an id. */
  modelConfig: Readonly<Record<string, unknown>>;
  objective: Objective;
  method: Method;
  /** What the weights are loaded in; `auto`: what the checkpoint says (transformers 5's default). */
  dtype: FloatDType | 'auto';
  /** Autocast. */
  mixedPrecision: MixedPrecision;
  perDeviceTrainBatchSize: number;
  perDeviceEvalBatchSize: number;
  /** Whether evaluation runs during training. */
  eval: boolean;
  gradientAccumulationSteps: number;
  /** Tokens a row; rows are taken as full. */
  maxLength: number;
  /** Tokens of a target row (seq2seq); null: as many as `maxLength`. */
  maxTargetLength: number | null;
  packing: boolean;
  /** The micro batch is flattened to one row without padding. */
  paddingFree: boolean;
  /** A padding mask is passed to the model. */
  attentionMask: boolean;
  attnImplementation: AttnImplementation;
  gradientCheckpointing: GradientCheckpointing;
  /** transformers' OptimizerNames. */
  optim: string;
  /** `rank=64, update_proj_gap=100`: settings of the optimizer's own. */
  optimArgs: string;
  /** Layers that GaLore and APOLLO project. */
  optimTargetModules: 'all-linear' | readonly string[];
  /** 0: no clipping. */
  maxGradNorm: number;
  /** Each parameter is updated as soon as its gradient is there, which then ends (torchtune's `optimizer_in_bwd`); not said: no. */
  optimizerInBackward?: boolean;
  /** Sharded gradients are reduced over the ranks after every micro batch; not said: after an optimizer step's last one only. */
  syncsEachMicroBatch?: boolean;
  /** The trainer builds the model of modules of its own; not said: those of transformers. */
  ownModules?: OwnModules;
  /** The training loop still names loss and logits of one micro batch while the next one runs; not said: no. */
  holdsLastLoss?: boolean;
  /** Embeddings, head and norms are held in fp32 whatever `dtype` says (axolotl's full training); not said: no. */
  embeddingsInFp32?: boolean;
  /** 0: none; else the Trainer computes the loss by itself. */
  labelSmoothingFactor: number;
  /** Noise on the embeddings in training; 0: none. */
  neftuneNoiseAlpha: number;
  torchCompile: boolean;
  quantization: Quantization | null;
  lora: Lora | null;
  ia3: Ia3 | null;
  promptTuning: PromptTuning;
  generation: Generation;
  /** DPO and KTO: the reference model's log-probabilities are computed before training. */
  precomputeRefLogProbs: boolean;
  distributed: Distributed;
  dataloaderNumWorkers: number;
  dataloaderPinMemory: boolean;
  lossImpl: LossImpl;
  /** What else is fused; not said: norms and rotary embeddings with a fused loss, nothing with any other. */
  fusedKernels?: readonly FusedKernel[];
  versions: Versions;
  outputDir: string;
  saveTotalLimit: number | null;
  resumeFromCheckpoint: string | null;
  /** Free-standing allocator setting as the trainer will see it, `expandable_segments:True`; empty: none. */
  allocatorConf: string;
}

export type SettingName = keyof TrainingValues;

/** A value and who set it; `null`: it applies but cannot be known from what was read. */
export interface Setting<T> {
  readonly value: T | null;
  readonly origin: Origin;
}

/** What was understood of a launch. A setting that does not apply (LoRA in a full run) is absent. */
export type TrainingSpec = { readonly [K in SettingName]?: Setting<TrainingValues[K]> };

/** `perDeviceTrainBatchSize` → `per_device_train_batch_size`, the spelling of files, JSON and messages. */
export const settingKey = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
