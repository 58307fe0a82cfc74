import type { LinearOp } from './layers.ts';
import type { Activation } from './pointwise.ts';

/** State-space mixers and linear attention. See `op.ts` for how ops name their values. */

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

/**
 * Mamba's selective scan, token by token, the gate included: `A_log` (channels × state size) and `D` (one a channel). The step
 * sizes come out of a linear layer whose weight was used before, and whose bias is added here.
 */
export interface SelectiveScanOp {
  readonly op: 'selective_scan';
  readonly channels: number;
  readonly stateSize: number;
  /** The layer whose bias is added; it was run by its weight alone. */
  readonly step: LinearOp;
  readonly x: string;
  readonly dt: string;
  readonly b: string;
  readonly c: string;
  readonly gate: string;
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
