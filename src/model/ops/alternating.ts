/**
 * AltUp (Gemma 3n): a token has several vectors between layers, of which one runs through the blocks. See `op.ts` for how ops
 * name their values.
 *
 * `predict`: the vectors mixed by `coefs`, plus what they were, copied in order; `output` has all of them. `correct`: what the
 * block has changed in one vector (`input`), repeated for each, times `coefs`, plus the predictions `all`. `add`: `input` onto all
 * vectors of `all` but the first, in place. `mean`: the mean of all, one vector a token.
 */
export interface AlternatingOp {
  readonly op: 'alternating';
  readonly step: 'predict' | 'correct' | 'add' | 'mean';
  /** Vectors a token. */
  readonly streams: number;
  readonly hiddenSize: number;
  /** All vectors. */
  readonly all: string;
  /** One vector a token; not for `predict`. */
  readonly input?: string;
  /** Numbers a token; not for `add`. */
  readonly coefs?: string;
  readonly output: string;
}
