import { joinPath, type LinearOp, type MoeOp } from '../../model/index.ts';
import type { LoopedExperts, MoeState, Parameter, StackedWeight } from '../parameter.ts';
import { type Dtype, F32 } from '../tape/tape.ts';
import { versionFacts } from '../versions.ts';
import { linearState, unnamedLinear } from './linear-states.ts';
import type { ParameterSet } from './parameter-set.ts';

/** Router and experts of a sparse block: stacked, or as modules of their own where the version has them so. */
export function expertsState(
  set: ParameterSet,
  op: MoeOp,
  path: string,
  count: number,
): { readonly looped: LoopedExperts } | { readonly moe: MoeState } {
  // Gated experts behind a plain `gate` were modules; others (gpt-oss, Granite) have always been stacked.
  const { router, logits, biased, ungated } = op;
  const loops =
    versionFacts(set.values.versions).loopsExperts && router === 'gate' && logits === undefined && !biased && !ungated;
  return loops ? { looped: loopedState(set, op, path, count) } : { moe: stackedState(set, op, count) };
}

/** `matrices` weights in one 3-D parameter. */
export function stackedWeight(
  set: ParameterSet,
  matrices: number,
  rows: number,
  columns: number,
  count: number,
  dtype: Dtype = set.rest,
): Parameter {
  const stacked = set.makeBase(matrices * rows, columns, count, dtype);
  stacked.stack = matrices;
  return stacked;
}

function stackedState(set: ParameterSet, op: MoeOp, count: number): MoeState {
  const ranks = set.adapters.forExperts(op);
  const { experts, hiddenSize, intermediateSize } = op;
  const weight = (
    matrices: number,
    rows: number,
    columns: number,
    rank: number,
    dtype: Dtype = set.rest,
  ): StackedWeight => {
    const stacked = stackedWeight(set, matrices, rows, columns, count, dtype);
    if (rank === 0) return { weight: stacked, lora: undefined };
    set.matchedTargets += count;
    const a = set.make(rank * matrices, columns, set.adapters.dtype, true, count);
    return { weight: stacked, lora: { a, b: set.make(rows, rank * matrices, set.adapters.dtype, true, count) } };
  };
  const width = op.ungated ? intermediateSize : 2 * intermediateSize;
  const corrected = op.routing?.form === 'corrected_softmax';
  // ERNIE keeps its router in fp32, and its correction is a parameter that is never trained.
  if (corrected) set.make(1, experts, F32, false, count);
  const row = (columns: number): Parameter => set.makeBase(1, columns, count);
  return {
    router:
      op.logits === undefined ? weight(1, experts, hiddenSize, ranks.router, corrected ? F32 : set.rest) : undefined,
    gateUp: weight(experts, width, hiddenSize, ranks.gateUp),
    down: weight(experts, hiddenSize, intermediateSize, ranks.down),
    biases: op.biased
      ? { router: row(experts), gateUp: row(experts * width), down: row(experts * hiddenSize) }
      : undefined,
  };
}

function loopedState(set: ParameterSet, op: MoeOp, path: string, count: number): LoopedExperts {
  const { hiddenSize, intermediateSize, experts } = op;
  const block = joinPath(path, op.name);
  const expert = joinPath(block, 'experts.0');
  const names = op.targetNames ?? { router: op.router, gate: 'gate_proj', up: 'up_proj', down: 'down_proj' };
  const layer = (name: string, inFeatures: number, outFeatures: number): LinearOp =>
    unnamedLinear(name, inFeatures, outFeatures, false);
  return {
    router: linearState(set, layer(names.router, hiddenSize, experts), block, count),
    gate: linearState(set, layer(names.gate, hiddenSize, intermediateSize), expert, count * experts),
    up: linearState(set, layer(names.up, hiddenSize, intermediateSize), expert, count * experts),
    down: linearState(set, layer(names.down, intermediateSize, hiddenSize), expert, count * experts),
  };
}
