import { type ModelDescription, visitOps } from '../../model/index.ts';
import { roundUp } from '../tape/tape.ts';

/** Copies of one token's logits in fp32 that generate() has at once: logits, warped, sorted, probabilities. */
const LOGIT_COPIES = 4;

/** Keys and values of every layer, bytes; a window bounds what a layer keeps. Source: transformers 5.17 cache_utils.py. */
export function cacheBytes(description: ModelDescription, rows: number, tokens: number, width: number): number {
  return description.layers.reduce((total, kind) => total + layerCacheBytes(description, kind, rows, tokens, width), 0);
}

function layerCacheBytes(
  description: ModelDescription,
  kind: number,
  rows: number,
  tokens: number,
  width: number,
): number {
  let bytes = 0;
  visitOps(description.kinds[kind]!, '', (op) => {
    if (op.op !== 'attention') return;
    const kept = Math.min(tokens, op.window ?? tokens);
    bytes += 2 * roundUp(rows * op.kvHeads * op.headDim * kept * width);
  });
  return bytes;
}

/** What the last token takes beside the cache, bytes: one layer's keys and values while they grow by a copy, and its logits. */
export function decodingTransient(description: ModelDescription, rows: number, tokens: number, width: number): number {
  const layer = Math.max(
    0,
    ...description.kinds.map((_, kind) => layerCacheBytes(description, kind, rows, tokens, width)),
  );
  return layer + LOGIT_COPIES * roundUp(rows * description.vocabSize * 4);
}
