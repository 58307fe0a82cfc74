import { type ModelDescription, type ModelFacts, type Op, type Stack, visitOps } from '../../model/index.ts';

/** Attention layers: what the scores of each cost a token. */
export interface AttentionWork {
  /** Query heads × features a head. */
  readonly width: number;
  readonly heads: number;
  /** Tokens it looks back at most; undefined: all of the row. */
  readonly window: number | undefined;
  /** How many layers are alike. */
  readonly count: number;
}

/** Linear layers that an adapter can stand beside. */
export interface LinearWork {
  readonly name: string;
  readonly inFeatures: number;
  readonly outFeatures: number;
  /** How many layers are alike. */
  readonly count: number;
}

/** What one token costs in a model, from its description alone. */
export interface Workload {
  /** Weights of the linear layers that one token is multiplied with, the head and the experts it is not sent to left out. */
  readonly activeWeights: number;
  /** Weights of the linear layers, all experts counted: what a pass over many tokens reads. */
  readonly layerWeights: number;
  readonly headWeights: number;
  readonly attention: readonly AttentionWork[];
  /** The linear layers of all layers. */
  readonly linears: readonly LinearWork[];
  /** Elements that operations between the multiplications read or write for one token, in one pass. */
  readonly pointwiseElements: number;
  /** Kernels of one forward pass. */
  readonly kernels: number;
  /** Hidden states between the layers: elements a token over all of them. */
  readonly boundaryElements: number;
  readonly parameters: number;
}

/** A layer's part, counted while its ops are visited. */
interface Tally {
  active: number;
  all: number;
  pointwise: number;
  kernels: number;
  attention: AttentionWork[];
  linears: LinearWork[];
}

/** Passes over its elements, reads and writes, that an op of the eager classes makes; a norm computes in fp32 by several kernels. */
const PASSES = { norm: 16, output: 4 } as const;

/** Kernels an op launches in eager PyTorch. */
const KERNELS: Partial<Record<Op['op'], number>> = {
  norm: 6,
  rotary: 8,
  attention: 2,
  moe: 20,
  split: 0,
  assign: 0,
  heads: 0,
};

function count(op: Op, tally: Tally): void {
  tally.kernels += KERNELS[op.op] ?? 1;
  switch (op.op) {
    case 'linear':
      tally.active += op.inFeatures * op.outFeatures;
      tally.all += op.inFeatures * op.outFeatures;
      tally.pointwise += PASSES.output * op.outFeatures;
      tally.linears.push({ name: op.name, inFeatures: op.inFeatures, outFeatures: op.outFeatures, count: 1 });
      break;
    case 'norm':
      tally.pointwise += PASSES.norm * op.size;
      break;
    case 'moe':
    case 'dense_experts': {
      const matrices = op.op === 'moe' && op.ungated ? 2 : 3;
      const expert = matrices * op.hiddenSize * op.intermediateSize;
      const chosen = op.op === 'moe' ? op.expertsPerToken : op.experts;
      tally.active += chosen * expert;
      tally.all += op.experts * expert;
      tally.pointwise += PASSES.output * chosen * (2 * op.intermediateSize + op.hiddenSize);
      break;
    }
    case 'attention':
      tally.attention.push({ width: op.heads * op.headDim, heads: op.heads, window: op.window, count: 1 });
      break;
    case 'disentangled':
      // Content and two kinds of positions: three score matrices.
      for (let form = 0; form < 3; form += 1) {
        tally.attention.push({ width: op.heads * op.headDim, heads: op.heads, window: undefined, count: 1 });
      }
      break;
    default:
      break;
  }
}

function tallyOf(ops: readonly Op[]): Tally {
  const tally: Tally = { active: 0, all: 0, pointwise: 0, kernels: 0, attention: [], linears: [] };
  visitOps(ops, '', (op) => count(op, tally));
  return tally;
}

/** Layers that are alike stand once: a workload is read for every plan that is looked at. */
function countAlike<T extends { readonly count: number }>(items: readonly T[]): readonly T[] {
  const found = new Map<string, T>();
  for (const item of items) {
    const key = JSON.stringify({ ...item, count: 0 });
    const known = found.get(key);
    found.set(key, known ? { ...known, count: known.count + item.count } : item);
  }
  return [...found.values()];
}

const layersOf = ({ kinds, layers }: Stack): readonly Tally[] => {
  const tallies = kinds.map(tallyOf);
  return layers.map((kind) => tallies[kind]!);
};

const stacksOf = (description: ModelDescription): readonly Stack[] =>
  description.encoder ? [description.encoder, description] : [description];

/** The workload of a model; mixers without a cost of their own here count by their linear layers. */
export function workloadOf({ description, parameters, hiddenSize, vocabSize }: ModelFacts): Workload {
  const stacks = stacksOf(description);
  const layers = stacks.flatMap(layersOf);
  const sum = (of: (tally: Tally) => number): number => layers.reduce((total, tally) => total + of(tally), 0);
  return {
    activeWeights: sum(({ active }) => active),
    layerWeights: sum(({ all }) => all),
    headWeights: (description.head.inFeatures ?? hiddenSize) * vocabSize,
    attention: countAlike(layers.flatMap(({ attention }) => attention)),
    linears: countAlike(layers.flatMap(({ linears }) => linears)),
    pointwiseElements: sum(({ pointwise }) => pointwise),
    kernels: sum(({ kernels }) => kernels),
    boundaryElements: stacks.reduce((total, stack) => total + stack.layers.length * stack.hiddenSize, 0),
    parameters,
  };
}
