import type { attention } from './parts.ts';

type Shape = Parameters<typeof attention>[0];

/** Attention of encoders after BERT: as many keys as queries, heads that share the hidden size out evenly, dropout on the scores. */
export const evenHeads = (hiddenSize: number, heads: number, dropout: number): Shape & { readonly eager: 'bare' } => ({
  hiddenSize,
  heads,
  kvHeads: heads,
  headDim: Math.floor(hiddenSize / heads),
  dropout,
  eager: 'bare',
});
