import type { LinearOp } from './layers.ts';

/** Attention, the values it is given and the positions it knows. See `op.ts` for how ops name their values. */

/** `view(B, S, heads, head_dim).transpose(1, 2)`: no memory, but a copy in the backward pass where the layout changed. */
export interface HeadsOp {
  readonly op: 'heads';
  readonly input: string;
  readonly output: string;
}

/** Rotary embedding of q and k; the names are bound again. An empty name: only the other one is turned. */
export interface RotaryOp {
  readonly op: 'rotary';
  readonly q: string;
  readonly k: string;
  readonly qHeads: number;
  readonly kHeads: number;
  readonly headDim: number;
  /** Features of a head that turn. */
  readonly rotaryDim: number;
  /** The turned features are concatenated with the others (of which there may be none). */
  readonly join: boolean;
  /** Neighbours turn together (`x[..., ::2]`), not the two halves. */
  readonly pairs?: boolean;
  /**
   * In fp32: q and k are cast before everything (Cohere), each factor for itself once turned (ERNIE), or once for every factor
   * (ESM); only the tables are, and the result goes back (OLMo).
   */
  readonly wide?: 'before' | 'inside' | 'each' | 'tables';
  /**
   * The layer makes its own tables. `repeated`: each half of the shared ones twice (GLM). `gathered`, `indexed`: looked up
   * among `positions` sines, by torch.gather and cast (GPT-J), or by an index and left in fp32 (CodeGen); q and k lie as
   * (batch, tokens, heads, dim) then.
   */
  readonly tables?: 'repeated' | 'gathered' | 'indexed';
  readonly positions?: number;
  /** q and k lie as (batch, tokens, heads, dim): they are turned before their heads are told apart in memory (Gemma 3n). */
  readonly flat?: boolean;
  /**
   * Instead of `x * cos + rotate_half(x) * sin`. `chunks`: both halves turned and joined (gpt-oss). `strided`: the same with
   * even and odd features (DeepSeek V3). `complex`: a product of complex numbers in fp32 (DeepSeek V2, Llama 4).
   */
  readonly turning?: 'chunks' | 'strided' | 'complex';
}

/**
 * `upcast`: softmax in fp32, cast back (Llama and most). `plain`: softmax in the scores' dtype, cast to the
 * values' (GPT-2). `bare`: the same, as it comes out, which is fp32 under autocast (BERT). `in_place`: scores
 * divided in place (Falcon). `fp32`: q and k in fp32 before their product (GPT-J). `baddbmm`: heads and rows as one
 * dimension, ALiBi inside the product (BLOOM). `biased`: ALiBi added in fp32, masked_fill (MPT). `biased_in_place`: ALiBi
 * added in fp32, scaled in place, every stage named (Falcon). `sinks`: one more learned score a head, softmax over all, then
 * dropped (gpt-oss). `named`: a bias added in place, every stage named, softmax as it comes out (MPNet).
 */
export type EagerForm =
  | 'upcast'
  | 'plain'
  | 'bare'
  | 'in_place'
  | 'fp32'
  | 'baddbmm'
  | 'biased'
  | 'biased_in_place'
  | 'sinks'
  | 'named';

export interface AttentionOp {
  readonly op: 'attention';
  readonly q: string;
  readonly k: string;
  readonly v: string;
  readonly output: string;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  /** Features of a head of v and of the result, where they differ from those of q and k (MLA). */
  readonly valueDim?: number;
  readonly dropout: number;
  /** Cap on the scores, eager only. */
  readonly softcap: boolean;
  readonly eager: EagerForm;
  /** Keys and values are repeated to the number of query heads where the kernel is not given grouped heads. */
  readonly repeats: boolean;
  /** Sliding window in tokens; undefined: all tokens. */
  readonly window: number | undefined;
  /**
   * `causal` (default): there is always a mask; `padding`: only where a padding mask is passed (encoders, cross-attention);
   * `none`: never (sound).
   */
  readonly mask?: 'causal' | 'padding' | 'none';
  /** Name of a value that is added to the scores (T5's position bias). */
  readonly bias?: string;
}

/**
 * DeBERTa's attention: scores of content with content, of content with relative positions and the other way round. Written
 * out in Python, so always eager.
 */
export interface DisentangledOp {
  readonly op: 'disentangled';
  readonly query: LinearOp;
  readonly key: LinearOp;
  readonly value: LinearOp;
  /** Projections of the positions; absent: those of the content, used twice. */
  readonly positionKey: LinearOp | undefined;
  readonly positionQuery: LinearOp | undefined;
  readonly contentToPosition: boolean;
  readonly positionToContent: boolean;
  readonly heads: number;
  readonly headDim: number;
  /** Vectors of relative positions; 0: none. */
  readonly positions: number;
  readonly dropout: number;
  readonly positionDropout: number;
  readonly input: string;
  readonly positionsInput: string;
  readonly output: string;
}

/** One number a head and pair of positions, shared by the rows: looked up in a table of distances, or zeros (T5). */
export interface PositionBiasOp {
  readonly op: 'position_bias';
  readonly name: string;
  readonly heads: number;
  /** Rows of the table; 0: zeros, without parameters. */
  readonly buckets: number;
  /** Value whose tokens are the keys. */
  readonly keys: string;
  /** Features of a token of `keys`. */
  readonly keySize: number;
  /** Copied for every row (MPNet). */
  readonly perRow?: boolean;
  readonly output: string;
}
