import type { ModelDescription, Op, Stack } from '../model/index.ts';
import { virtualTokenShapes } from './adapters/virtual-tokens.ts';
import type {
  LinearState,
  OpState,
  Parameter,
  ParameterGroup,
  ParameterSettings,
  QuantisedGroup,
} from './parameter.ts';
import { linearState, unnamedLinear } from './parameters/linear-states.ts';
import { addOps, firstTable } from './parameters/op-states.ts';
import { ParameterSet } from './parameters/parameter-set.ts';
import { F32, type Leaf } from './tape/tape.ts';

export * from './parameter.ts';

export interface ParameterPlan {
  readonly states: ReadonlyMap<Op, OpState>;
  /** Of the token head; without a weight where a scoring head stands in its place. */
  readonly head: LinearState & { readonly frozenCopy?: Parameter };
  /** All tensors with how often each occurs. */
  readonly groups: readonly ParameterGroup[];
  /** Those of modules that a step on text never runs: they get no gradients and no optimizer states. */
  readonly idle: ReadonlySet<ParameterGroup>;
  readonly quantisedBytes: number;
  /** Elements of the largest quantised weight. */
  readonly largestQuantised: number;
  /** Quantised weights with how often each occurs. */
  readonly quantised: readonly QuantisedGroup[];
  /** Embedding, last norm and head, bytes. */
  readonly rootBytes: number;
  /** Resident bytes of one layer of each kind (frozen, quantised and trainable). */
  readonly kindBytes: readonly number[];
  readonly residentBytes: number;
  readonly trainable: number;
  readonly matchedTargets: number;
  /** What gets gradients and optimizer states. */
  readonly trained: TrainedTensors;
  /** Of every tensor that gets a gradient, idle ones included, with its uses in one pass. */
  readonly leaves: readonly { readonly leaf: Leaf; readonly uses: number }[];
  /** Elements of the largest weight. */
  readonly largestElements: number;
}

/** The tensors that a step on text trains, and sums over them. */
export interface TrainedTensors {
  readonly groups: readonly ParameterGroup[];
  readonly tensors: number;
  readonly bytes: number;
  readonly elements: number;
  /** Elements of the largest one. */
  readonly largest: number;
}

/**
 * Builds every parameter tensor of a run: base in its dtype, quantised layers, adapters, trained copies. `scoring`: ops of
 * the head that scores rows, in place of the token head.
 */
export function planParameters(
  description: ModelDescription,
  values: ParameterSettings,
  scoring?: readonly Op[],
): ParameterPlan {
  const set = new ParameterSet(description, values);
  const { groups } = set;
  const { encoder } = description;
  const encoderKindBytes = encoder ? addStack(set, encoder, parentOf(encoder.layersPath)) : [];
  const kindBytes = addStack(set, description, description.rootPath ?? parentOf(description.layersPath));
  const bytesOf = ({ layers, sharesWeights }: Stack, bytes: readonly number[]): number =>
    (sharesWeights ? [...new Set(layers)] : layers).reduce((total, kind) => total + bytes[kind]!, 0);
  const layerBytes = bytesOf(description, kindBytes) + (encoder ? bytesOf(encoder, encoderKindBytes) : 0);
  const beforeIdle = groups.length;
  for (const { path, ops, count } of description.idle ?? []) addOps(set, ops, path, count);
  const idle = new Set(groups.slice(beforeIdle));

  let head: ParameterPlan['head'] = { weight: undefined, quantised: undefined, bias: undefined, adapter: undefined };
  if (scoring) addOps(set, scoring, '', 1, true);
  else head = tokenHead(set);
  for (const { rows, columns } of virtualTokenShapes(description, values)) set.make(rows, columns, F32, true, 1);
  const residentBytes = set.bytesSoFar();
  return {
    states: set.states,
    head,
    groups,
    idle,
    quantisedBytes: set.quantisedBytes,
    largestQuantised: set.largestQuantised,
    quantised: set.quantised,
    rootBytes: residentBytes - layerBytes,
    kindBytes: [...kindBytes, ...encoderKindBytes],
    residentBytes,
    trainable: groups.reduce(
      (total, group) => total + (group.parameter.trainable ? group.parameter.elements * group.count : 0),
      0,
    ),
    matchedTargets: set.matchedTargets,
    trained: trainedTensors(groups.filter((group) => group.parameter.trainable && !idle.has(group))),
    leaves: groups.flatMap(({ parameter }) => {
      const leaf = parameter.tensor.node?.leaf;
      return leaf ? [{ leaf, uses: leaf.uses }] : [];
    }),
    largestElements: groups.reduce((most, { parameter }) => Math.max(most, parameter.elements), set.largestQuantised),
  };
}

/** Makes the tensors ready for a walk, whatever walk they were in before. */
export function renew({ leaves }: ParameterPlan): void {
  for (const { leaf, uses } of leaves) {
    leaf.uses = uses;
    leaf.arrived = 0;
    leaf.pending = null;
  }
}

function trainedTensors(groups: readonly ParameterGroup[]): TrainedTensors {
  let [tensors, bytes, elements, largest] = [0, 0, 0, 0];
  for (const { parameter, count } of groups) {
    tensors += count;
    bytes += parameter.bytes * count;
    elements += parameter.elements * count;
    largest = Math.max(largest, parameter.elements);
  }
  return { groups, tensors, bytes, elements, largest };
}

/** Returns the resident bytes of one layer of each kind. */
function addStack(set: ParameterSet, stack: Stack, root: string): number[] {
  addOps(set, stack.embedding, root, 1);
  const bytes = stack.kinds.map((ops, kind) => {
    const times = stack.layers.filter((entry) => entry === kind).length;
    const count = stack.sharesWeights ? Math.min(1, times) : times;
    if (count === 0) return 0;
    const before = set.bytesSoFar();
    addOps(set, ops, `${stack.layersPath}.0`, count);
    return (set.bytesSoFar() - before) / count;
  });
  addOps(set, stack.final, root, 1);
  return bytes;
}

function tokenHead(set: ParameterSet): ParameterPlan['head'] {
  const { adapters, description, outer } = set;
  const { hiddenSize, vocabSize, head } = description;
  const inFeatures = head.inFeatures ?? hiddenSize;
  addOps(set, head.transform ?? [], '', 1);
  const embedded = set.states.get(firstTable(description))!;
  const tiedWeight = embedded.frozenCopy ?? embedded.weight!;
  const { quantization, ownModules } = set.values;
  // LitGPT has a head of its own whatever the checkpoint, and quantises it.
  const litgpt = ownModules === 'litgpt';
  const tied = head.tied && !litgpt;
  if (quantization && litgpt)
    return linearState(set, unnamedLinear(head.name, inFeatures, vocabSize, head.bias), '', 1);
  const weight = tied ? tiedWeight : set.make(vocabSize, inFeatures, outer, !set.peft, 1, head.name);
  const bias = head.bias ? set.makeBase(1, vocabSize, 1, outer) : undefined;
  const plain: ParameterPlan['head'] = { weight, quantised: undefined, bias, adapter: undefined };
  if (adapters.trainsCopyOf(head.name)) {
    const copy = set.make(vocabSize, inFeatures, outer, true, 1);
    return { ...plain, weight: copy, frozenCopy: weight };
  }
  if (tied && tiedWeight === embedded.weight && tiedWeight.tensor.node) tiedWeight.tensor.node.leaf!.uses += 1;
  const shape = unnamedLinear(head.name, inFeatures, vocabSize, head.bias);
  const adapter = adapters.forLinear(shape, head.name, (rows, columns, dtype) =>
    set.make(rows, columns, dtype, true, 1),
  );
  if (adapter) set.matchedTargets += 1;
  return { ...plain, adapter };
}

const parentOf = (path: string): string => path.split('.').slice(0, -1).join('.');
