import type { Activation } from './ops.ts';

/** Ops of sparse blocks, state-space mixers and linear attention; see `ops.ts` for how ops name their values. */

/** `torch.cat` along the last dimension. */
export interface ConcatenateOp {
  readonly op: 'concatenate';
  readonly inputs: readonly string[];
  /** The parts lie as (batch, heads, tokens, features) views. */
  readonly headMajor: boolean;
  readonly output: string;
}

/** `reshape` of a view whose dimensions cannot be merged: the same values in a new tensor. */
export interface CopyOp {
  readonly op: 'copy';
  readonly input: string;
  readonly output: string;
}

/** nn.Conv1d over the tokens, one filter a channel, and what follows it. */
export interface ConvolutionOp {
  readonly op: 'convolution';
  readonly name: string;
  readonly channels: number;
  readonly kernel: number;
  readonly bias: boolean;
  readonly activation: Activation | undefined;
  /** The input goes to the weight's dtype, the result back to its own. */
  readonly castsInput: boolean;
  readonly input: string;
  readonly output: string;
}

/** RMS norm with a gate, applied before the norm (Mamba 2) or after it (Qwen3-Next). */
export interface GatedNormOp {
  readonly op: 'gated_norm';
  readonly name: string;
  readonly size: number;
  readonly gated: 'before' | 'after';
  readonly input: string;
  readonly gate: string;
  readonly output: string;
}

/** The gated delta rule over the sequence, its decay parameters `A_log` and `dt_bias` (one a head) included. */
export interface DeltaRuleOp {
  readonly op: 'delta_rule';
  /** Value heads; queries and keys come repeated to as many. */
  readonly heads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  readonly query: string;
  readonly key: string;
  readonly value: string;
  readonly beta: string;
  readonly decay: string;
  readonly output: string;
}

/** Mamba 2's selective scan in chunks, `A_log`, `dt_bias` and `D` (one a head) included; the result is fp32. */
export interface ChunkScanOp {
  readonly op: 'chunk_scan';
  readonly heads: number;
  readonly headDim: number;
  readonly groups: number;
  readonly stateSize: number;
  /** Tokens a chunk. */
  readonly chunk: number;
  readonly x: string;
  readonly b: string;
  readonly c: string;
  readonly dt: string;
  readonly output: string;
}

/** A new (batch, heads, tokens, features) tensor into which parts are copied, those of a single head to every head (MLA). */
export interface CopyIntoOp {
  readonly op: 'copy_into';
  readonly parts: readonly string[];
  /** Features of each part. */
  readonly features: readonly number[];
  readonly heads: number;
  readonly output: string;
}

/** Router and experts of a sparse block, experts as two 3-D parameters (transformers 5, grouped_mm). */
export interface MoeOp {
  readonly op: 'moe';
  readonly name: string;
  /** Module name of the router. */
  readonly router: string;
  readonly input: string;
  readonly output: string;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly normalise: boolean;
  /** Names these weights had as separate linear layers, where PEFT still takes its targets in them; undefined: out of its reach. */
  readonly targetNames:
    | { readonly router: string; readonly gate: string; readonly up: string; readonly down: string }
    | undefined;
  /** Whether the weights of the chosen experts go back to the router's dtype. */
  readonly castWeights: boolean;
  readonly activation: Activation;
  /** How experts are chosen; absent: softmax over all of them, then the largest. */
  readonly routing?: Routing;
  /** The router's logits were computed before, under this name: it is an nn.Linear of its own. */
  readonly logits?: string;
  /** Router and experts have biases; gate and up projection lie interleaved and are clamped (gpt-oss). */
  readonly biased?: boolean;
  /** One projection up, without a gate. */
  readonly ungated?: boolean;
}

/**
 * `topk_softmax`: the largest logits, softmax over those (`wide`: in fp32, back to the hidden states' dtype).
 * `sigmoid_groups`: sigmoid in fp32, a correction bias, groups of experts masked (DeepSeek V3). `softmax_groups`: softmax in
 * fp32, groups masked when `groups` is over 1 (DeepSeek V2). `corrected_softmax`: softmax in fp32, chosen with a correction
 * bias (ERNIE). `sigmoid`: sigmoid, a correction bias (LFM2).
 */
export type Routing =
  | { readonly form: 'topk_softmax'; readonly wide: boolean }
  | { readonly form: 'sigmoid_groups'; readonly groups: number }
  | { readonly form: 'softmax_groups'; readonly groups: number }
  | { readonly form: 'corrected_softmax' }
  | { readonly form: 'sigmoid'; readonly corrected: boolean };
