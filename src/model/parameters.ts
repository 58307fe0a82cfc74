import { isWeightless, type ModelDescription, type MoeOp, type Op, type Stack, visitOps } from './ops.ts';

/** Parameters an op brings with it. */
export function parametersOf(op: Op): number {
  switch (op.op) {
    case 'embedding':
      return op.shared || op.fixed === 'buffer' ? 0 : op.rows * op.size;
    case 'frames':
      return op.outChannels * (op.inChannels * op.kernel + 1);
    case 'parameter':
      return op.elements;
    case 'position_bias':
      return op.buckets * op.heads;
    case 'linear':
      return op.sameAs ? 0 : op.inFeatures * op.outFeatures + (op.bias ? op.outFeatures : 0);
    case 'norm':
      return isWeightless(op.form) || op.sameAs ? 0 : op.size * (op.groups ?? 1) * (op.bias ? 2 : 1);
    case 'activation':
      return op.fn === 'xielu' ? 2 : 0;
    case 'attention':
      return op.eager === 'sinks' ? op.heads : 0;
    case 'convolution':
      return op.channels * (op.kernel + (op.bias ? 1 : 0));
    case 'gated_norm':
      return op.size;
    case 'delta_rule':
      return 2 * op.heads;
    case 'selective_scan':
      return op.channels * (op.stateSize + 1);
    case 'chunk_scan':
      return 3 * op.heads;
    case 'moe':
      return moeParameters(op);
    case 'dense_experts':
      return op.experts * 3 * op.intermediateSize * op.hiddenSize;
    default:
      return 0;
  }
}

function moeParameters(op: MoeOp): number {
  const width = op.ungated ? 1 : 2;
  const router = op.logits === undefined ? op.experts * (op.hiddenSize + (op.biased ? 1 : 0)) : 0;
  const weights = op.experts * (width + 1) * op.intermediateSize * op.hiddenSize;
  const biases = op.biased ? op.experts * (width * op.intermediateSize + op.hiddenSize) : 0;
  const correction = op.routing?.form === 'corrected_softmax' ? op.experts : 0;
  return router + weights + biases + correction;
}

function sum(ops: readonly Op[]): number {
  let total = 0;
  visitOps(ops, '', (op) => {
    total += parametersOf(op);
  });
  return total;
}

function sumStack({ embedding, kinds, layers, sharesWeights, final }: Stack): number {
  const perKind = kinds.map(sum);
  const owners = sharesWeights ? [...new Set(layers)] : layers;
  return sum(embedding) + owners.reduce((total, kind) => total + perKind[kind]!, 0) + sum(final);
}

/** Everything but the head. */
function sumBody(description: ModelDescription): number {
  const idle = (description.idle ?? []).reduce((total, { ops, count }) => total + sum(ops) * count, 0);
  return sumStack(description) + (description.encoder ? sumStack(description.encoder) : 0) + idle;
}

/** All parameters of a model with its token head, a tied head counted once. */
export function countParameters(description: ModelDescription): number {
  const { head, hiddenSize, vocabSize } = description;
  const projection = (head.tied ? 0 : (head.inFeatures ?? hiddenSize) * vocabSize) + (head.bias ? vocabSize : 0);
  return sumBody(description) + sum(head.transform ?? []) + projection;
}

/** All parameters with a scoring head in place of the token head. */
export const countScoringParameters = (description: ModelDescription, labels: number): number =>
  sumBody(description) + sum(classifierOps(description, labels));

/** The scoring head for `labels` scores a row. */
export function classifierOps(description: ModelDescription, labels: number): readonly Op[] {
  const { classifier, hiddenSize } = description;
  if (!classifier) {
    const score: Op = {
      op: 'linear',
      name: 'score',
      inFeatures: hiddenSize,
      outFeatures: labels,
      bias: false,
      form: 'linear',
      input: 'hidden_states',
      output: 'logits',
    };
    return [score];
  }
  return relabel(classifier.ops, labels);
}

/** The last linear layer gets one output a label; it may stand inside a call. */
function relabel(ops: readonly Op[], labels: number): readonly Op[] {
  for (let i = ops.length - 1; i >= 0; i -= 1) {
    const op = ops[i]!;
    const changed: Op | undefined =
      op.op === 'linear'
        ? { ...op, outFeatures: labels }
        : op.op === 'call'
          ? { ...op, ops: relabel(op.ops, labels) }
          : undefined;
    if (changed) return [...ops.slice(0, i), changed, ...ops.slice(i + 1)];
  }
  return ops;
}
