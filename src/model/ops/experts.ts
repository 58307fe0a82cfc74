import type { Activation } from './pointwise.ts';

/** Sparse blocks. See `op.ts` for how ops name their values. */

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
 * Experts that all run for every token, their inputs weighed by sigmoid scores that are zero for those not chosen (Llama 4);
 * the router's logits were made before. Gate and up projection are one weight.
 */
export interface DenseExpertsOp {
  readonly op: 'dense_experts';
  readonly name: string;
  readonly input: string;
  readonly logits: string;
  readonly output: string;
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly experts: number;
  readonly activation: Activation;
}

/**
 * `topk_softmax`: the largest logits, softmax over those (`wide`: in fp32, back to the hidden states' dtype).
 * `sigmoid_groups`: sigmoid in fp32, a correction bias, groups of experts masked (DeepSeek V3). `softmax_groups`: softmax in
 * fp32, groups masked when `groups` is over 1 (DeepSeek V2; `narrow`: in the hidden states' dtype, normalised, Mistral 4).
 * `corrected_softmax`: softmax in fp32, chosen with a correction bias (ERNIE). `sigmoid`: sigmoid, a correction bias (LFM2;
 * `wide`: in fp32, never multiplied by a number, MiniMax M2). `sparse_mixer`: two experts one after the other, sampled (Phi MoE).
 */
export type Routing =
  | { readonly form: 'topk_softmax'; readonly wide: boolean }
  | { readonly form: 'sigmoid_groups'; readonly groups: number }
  | { readonly form: 'softmax_groups'; readonly groups: number; readonly narrow?: boolean }
  | { readonly form: 'corrected_softmax' }
  | { readonly form: 'sigmoid'; readonly corrected: boolean; readonly wide?: boolean }
  | { readonly form: 'sparse_mixer' };
