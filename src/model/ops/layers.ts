/** Layers with weights of their own. See `op.ts` for how ops name their values. */

/** Table lookup by token id or by position. */
export interface EmbeddingOp {
  readonly op: 'embedding';
  readonly name: string;
  readonly rows: number;
  readonly size: number;
  /** `tokens`: one vector a token; `positions`: one a position, shared by the rows of the batch; `rows`: one a position and row. */
  readonly by: 'tokens' | 'positions' | 'rows';
  /** The module multiplies by a number (Gemma). */
  readonly scaled?: boolean;
  /** Looked up by kind of segment: how long a row may be does not depend on it. */
  readonly segments?: boolean;
  /** The table is the first token table of the model: no parameters of its own (encoder and decoder of T5 and BART). */
  readonly shared?: boolean;
  /** Never trained (sinusoids): a parameter all the same, or a buffer. */
  readonly fixed?: 'parameter' | 'buffer';
  readonly output: string;
}

/** nn.Conv1d with a bias over frames of sound. */
export interface FramesOp {
  readonly op: 'frames';
  readonly name: string;
  readonly inChannels: number;
  readonly outChannels: number;
  readonly kernel: number;
  /** Frames of a row that come out. */
  readonly frames: number;
  /** Absent: the features that the trainer passes, `frames` of them. */
  readonly input?: string;
  readonly output: string;
}

export interface LinearOp {
  readonly op: 'linear';
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  readonly bias: boolean;
  /** `linear`: nn.Linear; `conv1d`: transformers' Conv1D (addmm); `matmul`: `x @ weight.T`, then a separate bias add. */
  readonly form: 'linear' | 'conv1d' | 'matmul';
  /** The same module, used a second time. */
  readonly sameAs?: LinearOp;
  /** Only its weight is used here: no bias, and an adapter on it never runs (Mamba's step sizes). */
  readonly bypassed?: boolean;
  /** Its weight is fp32 whatever dtype the model is loaded in. */
  readonly wide?: boolean;
  /** In `_keep_in_fp32_modules`: fp32 where the model is loaded in fp16, and never quantised while loading (T5's `wo`). */
  readonly keptWide?: boolean;
  readonly input: string;
  readonly output: string;
}

/**
 * `rms`: fp32 inside, cast back, times weight (Llama). `rms_weight_inside`: weight applied before the cast (OLMo 2).
 * `rms_offset`: times (1 + weight) in fp32 (Gemma). `layer`: nn.LayerNorm. `layer_fp32`: F.layer_norm of an fp32 copy
 * without weights (OLMo). `layer_written`: layer norm without bias, written out in fp32 (Cohere). `layer_offset`: nn.LayerNorm
 * with 1 + weight (Nemotron). `layer_heads`: one nn.LayerNorm a head, results concatenated (StableLM). `rms_t5`: only the
 * variance in fp32, the result in the weight's dtype (T5). `rms_wide`: times the weight in fp32 (Gemma 3n). `rms_bare`: without
 * a weight (Llama 4).
 */
export type NormForm =
  | 'rms'
  | 'rms_weight_inside'
  | 'rms_offset'
  | 'layer'
  | 'layer_fp32'
  | 'layer_written'
  | 'layer_offset'
  | 'layer_heads'
  | 'rms_t5'
  | 'rms_wide'
  | 'rms_bare';

/** Norms that have no parameters. */
export const isWeightless = (form: NormForm): boolean => form === 'layer_fp32' || form === 'rms_bare';

export interface NormOp {
  readonly op: 'norm';
  readonly name: string;
  /** The same module, used a second time. */
  readonly sameAs?: NormOp;
  /** Elements normalised together. */
  readonly size: number;
  /** Groups with weights of their own (heads); absent: all share `size` weights. */
  readonly groups?: number;
  readonly form: NormForm;
  readonly bias: boolean;
  readonly input: string;
  readonly output: string;
}

/** A parameter that belongs to no layer of its own: class tokens, gates, the kernel of a patch embedding. PEFT never targets it. */
export interface ParameterOp {
  readonly op: 'parameter';
  readonly name: string;
  readonly elements: number;
  /** It never gets a gradient. */
  readonly untrained?: boolean;
  /** The value it is read by; absent: nothing on the way reads it. */
  readonly output?: string;
}
