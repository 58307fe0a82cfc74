import { type ModelDescription, type Op, visitOps } from './ops.ts';

/** Parameters an op brings with it. */
export function parametersOf(op: Op): number {
  switch (op.op) {
    case 'embedding':
      return op.rows * op.size;
    case 'linear':
      return op.inFeatures * op.outFeatures + (op.bias ? op.outFeatures : 0);
    case 'norm':
      return op.form === 'layer_fp32' ? 0 : op.size * (op.groups ?? 1) * (op.bias ? 2 : 1);
    case 'activation':
      return op.fn === 'xielu' ? 2 : 0;
    case 'moe':
      return op.experts * op.hiddenSize + op.experts * 3 * op.intermediateSize * op.hiddenSize;
    default:
      return 0;
  }
}

function sum(ops: readonly Op[]): number {
  let total = 0;
  visitOps(ops, '', (op) => {
    total += parametersOf(op);
  });
  return total;
}

/** All parameters of a causal language model, a tied head counted once. */
export function countParameters(description: ModelDescription): number {
  const perKind = description.kinds.map(sum);
  const layers = description.layers.reduce((total, kind) => total + perKind[kind]!, 0);
  const head =
    (description.head.tied ? 0 : description.hiddenSize * description.vocabSize) +
    (description.head.bias ? description.vocabSize : 0);
  return sum(description.embedding) + layers + sum(description.final) + head;
}
