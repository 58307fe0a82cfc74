/** Names, and how the same values are split, joined, copied and let go of. See `op.ts` for how ops name their values. */

/** `output = input`: one more name for the same value. */
export interface AssignOp {
  readonly op: 'assign';
  readonly input: string;
  readonly output: string;
}

/**
 * Consecutive parts of the last dimension. `chunk`: one op, gradients concatenated; `chunk_heads`: the same on a tensor
 * viewed as heads; `slices`: one slice each, gradients padded and added; `copies`: the first is a slice, the others are
 * copied out by an index list (Falcon).
 */
export interface SplitOp {
  readonly op: 'split';
  readonly form: 'chunk' | 'chunk_heads' | 'slices' | 'copies';
  readonly input: string;
  /** Features of the whole, where the parts are not all of it. */
  readonly of?: number;
  readonly outputs: readonly { readonly name: string; readonly features: number }[];
}

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
  /** In the order of the dimensions of a (batch, heads, tokens, features) view. */
  readonly headMajor?: boolean;
  readonly input: string;
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

/** Heads become real copies for `times` query heads each. */
export interface RepeatOp {
  readonly op: 'repeat';
  readonly times: number;
  readonly input: string;
  readonly output: string;
}

/** `hidden_states[:, 0]`: one vector a row. */
export interface FirstTokenOp {
  readonly op: 'first_token';
  /** Features of a token. */
  readonly size: number;
  readonly input: string;
  readonly output: string;
}

/** Lets go of names before their frame ends. */
export interface DropOp {
  readonly op: 'drop';
  readonly names: readonly string[];
}
