import type { LinearOp, ModelDescription, Op } from '../../model/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import type { OpState, ParameterPlan } from '../parameters.ts';
import { dtypeCode } from '../parameters.ts';
import { roundUp, widthOf } from '../tape/tape.ts';
import { versionFacts } from '../versions.ts';

/**
 * What the last micro batch leaves while a loop still names its loss: the logits, and what functions of the graph keep in
 * attributes of their own. Backward frees saved tensors; bitsandbytes before 0.43.1 keeps inputs of 4-bit layers in `ctx.tensors`.
 */
export function heldByLastLoss(
  { kinds, layers, vocabSize }: ModelDescription,
  values: PlanValues,
  plan: ParameterPlan,
): number {
  if (!values.holdsLastLoss) return 0;
  const tokens = values.perDeviceTrainBatchSize * values.maxLength;
  const width = values.mixedPrecision === 'no' ? widthOf(dtypeCode(values.dtype)) : 2;
  // Fabric has made them fp32, as transformers did before 4.46.
  const wide = values.ownModules === 'litgpt' || versionFacts(values.versions).rebindsLogits;
  const logits = values.lossImpl === 'fused' ? 0 : roundUp(tokens * vocabSize * (wide ? 4 : width));
  // A recomputed graph ends with its layer.
  if (values.gradientCheckpointing.enabled) return logits;
  const features = kinds.map((ops) => keptFeatures(ops, plan.states));
  return logits + layers.reduce((total, kind) => total + roundUp(tokens * features[kind]! * width), 0);
}

/** Features a token of the inputs that 4-bit layers keep, each value once. */
function keptFeatures(ops: readonly Op[], states: ReadonlyMap<Op, OpState>): number {
  let total = 0;
  let last: LinearOp | undefined;
  for (const op of ops) {
    if (op.op === 'call') total += keptFeatures(op.ops, states);
    if (op.op !== 'linear' || !states.get(op)?.linear?.quantised?.keepsInput) continue;
    if (last?.input !== op.input || op.input === last.output) total += op.inFeatures;
    last = op;
  }
  return total;
}
