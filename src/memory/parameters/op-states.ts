import {
  type EmbeddingOp,
  isWeightless,
  joinPath,
  type ModelDescription,
  type Op,
  visitOps,
} from '../../model/index.ts';
import { type OpState, Parameter } from '../parameter.ts';
import { expertsState, stackedWeight } from './expert-states.ts';
import { isSavedWhole, linearState, scoringState, useTwice } from './linear-states.ts';
import type { ParameterSet } from './parameter-set.ts';

/** Parameters of `count` equal modules. `scored`: the ops are those of a head that scores rows. */
export function addOps(set: ParameterSet, ops: readonly Op[], path: string, count: number, scored = false): void {
  visitOps(ops, path, (op, at) => {
    const state = stateOf(set, op, at, count, scored);
    if (state) set.states.set(op, state);
  });
}

function stateOf(set: ParameterSet, op: Op, at: string, count: number, scored: boolean): OpState | undefined {
  const row = (columns: number) => set.makeBase(1, columns, count);
  switch (op.op) {
    case 'linear': {
      if (op.sameAs) return usedAgain(set, op.sameAs);
      const saved = scored && isSavedWhole(joinPath(at, op.name));
      return { linear: saved ? scoringState(set, op) : linearState(set, op, at, count) };
    }
    case 'norm': {
      if (isWeightless(op.form)) return undefined;
      if (op.sameAs) return usedAgain(set, op.sameAs);
      const size = op.size * (op.groups ?? 1);
      const saved = set.adapters.trainsCopyOf(joinPath(at, op.name));
      const part = () => {
        const own = set.makeBase(1, size, count, set.outer);
        return saved ? set.make(1, size, set.outer, true, count) : own;
      };
      const weight = part();
      return op.bias ? { weight, bias: part() } : { weight };
    }
    case 'activation':
      return op.fn === 'xielu' ? { weight: row(1), bias: row(1) } : undefined;
    case 'embedding':
      return embeddingState(set, op, joinPath(at, op.name), count);
    case 'frames':
      return { weight: set.makeBase(op.outChannels, op.inChannels * op.kernel, count), bias: row(op.outChannels) };
    case 'parameter':
      return { weight: op.untrained ? set.make(1, op.elements, set.rest, false, count) : row(op.elements) };
    case 'disentangled':
      if (!op.positionKey && op.contentToPosition) useTwice(set.states.get(op.key)!.linear!);
      if (!op.positionQuery && op.positionToContent) useTwice(set.states.get(op.query)!.linear!);
      return undefined;
    case 'position_bias':
      return op.buckets > 0 ? { weight: set.makeBase(op.buckets, op.heads, count) } : undefined;
    case 'attention':
      return op.eager === 'sinks' ? { weight: row(op.heads) } : undefined;
    case 'convolution': {
      const weight = set.makeBase(op.channels, op.kernel, count);
      return op.bias ? { weight, bias: row(op.channels) } : { weight };
    }
    case 'gated_norm':
      return { weight: row(op.size) };
    case 'delta_rule':
      return { weight: row(op.heads), bias: row(op.heads) };
    case 'selective_scan':
      return { scan: [set.makeBase(op.channels, op.stateSize, count), row(op.channels)] };
    case 'chunk_scan':
      return { scan: [0, 1, 2].map(() => row(op.heads)) };
    case 'dense_experts': {
      const { experts, hiddenSize, intermediateSize } = op;
      const stacked = (rows: number, columns: number) => stackedWeight(set, experts, rows, columns, count);
      return { stacked: [stacked(hiddenSize, 2 * intermediateSize), stacked(intermediateSize, hiddenSize)] };
    }
    case 'moe':
      return expertsState(set, op, at, count);
    default:
      return undefined;
  }
}

/** The state of a module that has run before: its gradients are complete with this use. */
function usedAgain(set: ParameterSet, first: Op): OpState {
  const state = set.states.get(first)!;
  if (state.linear) useTwice(state.linear);
  for (const parameter of [state.weight, state.bias]) {
    const leaf = parameter?.tensor.node?.leaf;
    if (leaf) leaf.uses += 1;
  }
  return state;
}

function embeddingState(set: ParameterSet, op: EmbeddingOp, path: string, count: number): OpState {
  if (op.shared) {
    // One table for encoder, decoder and maybe head: its gradient is complete when all have given theirs.
    const state = set.states.get(firstTable(set.description))!;
    const leaf = state.weight!.tensor.node?.leaf;
    if (leaf) leaf.uses += 1;
    return state;
  }
  if (op.fixed) {
    const table = new Parameter(op.rows, op.size, set.rest, false);
    if (op.fixed === 'parameter') set.groups.push({ parameter: table, count });
    return { weight: table };
  }
  const frozen = set.makeBase(op.rows, op.size, count, set.outer);
  const { adapters } = set;
  if (!adapters.trainsCopyOf(path)) {
    const rank = adapters.rankOfTable(path);
    if (rank === 0) return { weight: frozen };
    set.matchedTargets += count;
    const a = set.make(rank, op.rows, adapters.dtype, true, count);
    return { weight: frozen, lowRank: { a, b: set.make(op.size, rank, adapters.dtype, true, count) } };
  }
  return { weight: set.make(op.rows, op.size, set.outer, true, count), frozenCopy: frozen };
}

/** The token table that a tied head and shared tables stand for. */
export function firstTable({ encoder, embedding, head }: ModelDescription): Op {
  let found: Op | undefined;
  visitOps([...(head.ownTable ? [] : (encoder?.embedding ?? [])), ...embedding], '', (op) => {
    if (!found && op.op === 'embedding' && op.by === 'tokens') found = op;
  });
  if (!found) throw new Error('the description has no token embedding');
  return found;
}
