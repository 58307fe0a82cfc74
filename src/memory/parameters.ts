import {
  type EmbeddingOp,
  joinPath,
  type LinearOp,
  type ModelDescription,
  type MoeOp,
  type Op,
  type Stack,
  visitOps,
} from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { adaptersFor } from './adapters/index.ts';
import { virtualTokenShapes } from './adapters/virtual-tokens.ts';
import {
  dtypeCode,
  type LinearState,
  type LoopedExperts,
  type MoeState,
  type OpState,
  Parameter,
  type ParameterGroup,
  type StackedWeight,
} from './parameter.ts';
import { quantise } from './quantise.ts';
import { type Dtype, F32 } from './tape/tape.ts';
import { versionFacts } from './versions.ts';

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
  /** Embedding, last norm and head, bytes. */
  readonly rootBytes: number;
  /** Resident bytes of one layer of each kind (frozen, quantised and trainable). */
  readonly kindBytes: readonly number[];
  readonly residentBytes: number;
  readonly trainable: number;
  readonly matchedTargets: number;
}

/** PEFT trains these whole, beside a frozen copy, when rows are scored (`PeftModelForSequenceClassification`). */
const SCORING_MODULES: readonly string[] = ['classifier', 'score'];

/** PEFT takes every module whose path ends with one of the names, whatever stands before them in the last part. */
const isSavedWhole = (path: string): boolean =>
  path.split('.').some((part) => SCORING_MODULES.some((name) => part.endsWith(name)));

/**
 * Builds every parameter tensor of a run: base in its dtype, quantised layers, adapters, trained copies. `scoring`: ops of
 * the head that scores rows, in place of the token head.
 */
export function planParameters(
  description: ModelDescription,
  values: PlanValues,
  scoring?: readonly Op[],
): ParameterPlan {
  const peft = values.method !== 'full';
  const base = dtypeCode(values.dtype);
  const quantization = values.quantization;
  const rest = quantization?.upcastRestToFp32 ? F32 : base;
  const adapters = adaptersFor(description, values);
  const states = new Map<Op, OpState>();
  const groups: ParameterGroup[] = [];
  let quantisedBytes = 0;
  let largestQuantised = 0;
  let matchedTargets = 0;

  const make = (rows: number, columns: number, dtype: Dtype, trainable: boolean, count: number): Parameter => {
    const parameter = new Parameter(rows, columns, dtype, trainable);
    groups.push({ parameter, count });
    return parameter;
  };

  const makeLinear = (rows: number, columns: number, dtype: Dtype, count: number, path: string): Parameter => {
    const parameter = new Parameter(rows, columns, dtype, !peft);
    groups.push({ parameter, count, path });
    return parameter;
  };

  const moeState = (op: MoeOp, count: number): MoeState => {
    const ranks = adapters.forExperts(op);
    const { experts, hiddenSize, intermediateSize } = op;
    const weight = (
      matrices: number,
      rows: number,
      columns: number,
      rank: number,
      dtype: Dtype = rest,
    ): StackedWeight => {
      const stacked = make(matrices * rows, columns, dtype, !peft, count);
      stacked.stack = matrices;
      if (rank === 0) return { weight: stacked, lora: undefined };
      matchedTargets += count;
      const a = make(rank * matrices, columns, adapters.dtype, true, count);
      return { weight: stacked, lora: { a, b: make(rows, rank * matrices, adapters.dtype, true, count) } };
    };
    const width = op.ungated ? intermediateSize : 2 * intermediateSize;
    const corrected = op.routing?.form === 'corrected_softmax';
    // ERNIE keeps its router in fp32, and its correction is a parameter that is never trained.
    if (corrected) make(1, experts, F32, false, count);
    const row = (columns: number): Parameter => make(1, columns, rest, !peft, count);
    return {
      router:
        op.logits === undefined ? weight(1, experts, hiddenSize, ranks.router, corrected ? F32 : rest) : undefined,
      gateUp: weight(experts, width, hiddenSize, ranks.gateUp),
      down: weight(experts, hiddenSize, intermediateSize, ranks.down),
      biases: op.biased
        ? { router: row(experts), gateUp: row(experts * width), down: row(experts * hiddenSize) }
        : undefined,
    };
  };

  const { keepsQuantisedInputs } = versionFacts(values.versions);
  const linearState = (op: LinearOp, path: string, count: number): LinearState => {
    const quantised = quantization
      ? quantise(op.outFeatures, op.inFeatures, quantization, keepsQuantisedInputs)
      : undefined;
    if (quantised) {
      quantisedBytes += quantised.bytes * count;
      largestQuantised = Math.max(largestQuantised, quantised.elements);
    }
    const weight = quantised
      ? undefined
      : makeLinear(op.outFeatures, op.inFeatures, base, count, joinPath(path, op.name));
    const bias = op.bias ? make(1, op.outFeatures, rest, !peft, count) : undefined;
    const adapter = adapters.forLinear(op, joinPath(path, op.name), (rows, columns, dtype) =>
      make(rows, columns, dtype, true, count),
    );
    if (adapter) matchedTargets += count;
    return { weight, quantised, bias, adapter };
  };

  /** Beside the frozen layer a copy that is trained. */
  const scoringState = (op: LinearOp): LinearState => {
    if (peft) {
      make(op.outFeatures, op.inFeatures, rest, false, 1);
      if (op.bias) make(1, op.outFeatures, rest, false, 1);
    }
    const weight = make(op.outFeatures, op.inFeatures, rest, true, 1);
    const bias = op.bias ? make(1, op.outFeatures, rest, true, 1) : undefined;
    return { weight, quantised: undefined, bias, adapter: undefined };
  };

  const embeddingState = (op: EmbeddingOp, path: string, count: number): OpState => {
    if (op.shared) {
      // One table for encoder, decoder and maybe head: its gradient is complete when all have given theirs.
      const state = states.get(firstTable(description))!;
      const leaf = state.weight!.tensor.node?.leaf;
      if (leaf) leaf.uses += 1;
      return state;
    }
    const frozen = make(op.rows, op.size, rest, !peft, count);
    if (!adapters.trainsCopyOf(path)) return { weight: frozen };
    return { weight: make(op.rows, op.size, rest, true, count), frozenCopy: frozen };
  };

  // Gated experts behind a plain `gate` were modules; others (gpt-oss, Granite) have always been stacked.
  const modules = versionFacts(values.versions).loopsExperts;
  const loops = ({ router, logits, biased, ungated }: MoeOp): boolean =>
    modules && router === 'gate' && logits === undefined && !biased && !ungated;
  const loopedState = (op: MoeOp, path: string, count: number): LoopedExperts => {
    const { hiddenSize, intermediateSize, experts } = op;
    const block = joinPath(path, op.name);
    const names = op.targetNames ?? { router: op.router, gate: 'gate_proj', up: 'up_proj', down: 'down_proj' };
    const layer = (name: string, inFeatures: number, outFeatures: number): LinearOp => ({
      op: 'linear',
      name,
      inFeatures,
      outFeatures,
      bias: false,
      form: 'linear',
      input: '',
      output: '',
    });
    const expert = joinPath(block, 'experts.0');
    return {
      router: linearState(layer(names.router, hiddenSize, experts), block, count),
      gate: linearState(layer(names.gate, hiddenSize, intermediateSize), expert, count * experts),
      up: linearState(layer(names.up, hiddenSize, intermediateSize), expert, count * experts),
      down: linearState(layer(names.down, intermediateSize, hiddenSize), expert, count * experts),
    };
  };

  const addOps = (ops: readonly Op[], path: string, count: number, scored = false): void =>
    visitOps(ops, path, (op, at) => {
      switch (op.op) {
        case 'linear': {
          const saved = scored && isSavedWhole(joinPath(at, op.name));
          states.set(op, { linear: saved ? scoringState(op) : linearState(op, at, count) });
          break;
        }
        case 'norm': {
          if (op.form === 'layer_fp32') break;
          const size = op.size * (op.groups ?? 1);
          const weight = make(1, size, rest, !peft, count);
          states.set(op, op.bias ? { weight, bias: make(1, size, rest, !peft, count) } : { weight });
          break;
        }
        case 'activation':
          if (op.fn !== 'xielu') break;
          states.set(op, { weight: make(1, 1, rest, !peft, count), bias: make(1, 1, rest, !peft, count) });
          break;
        case 'embedding':
          states.set(op, embeddingState(op, joinPath(at, op.name), count));
          break;
        case 'parameter':
          states.set(op, { weight: make(1, op.elements, rest, !peft, count) });
          break;
        case 'disentangled':
          if (!op.positionKey && op.contentToPosition) useTwice(states.get(op.key)!.linear!);
          if (!op.positionQuery && op.positionToContent) useTwice(states.get(op.query)!.linear!);
          break;
        case 'position_bias':
          if (op.buckets > 0) states.set(op, { weight: make(op.buckets, op.heads, rest, !peft, count) });
          break;
        case 'attention':
          if (op.eager === 'sinks') states.set(op, { weight: make(1, op.heads, rest, !peft, count) });
          break;
        case 'convolution': {
          const weight = make(op.channels, op.kernel, rest, !peft, count);
          states.set(op, op.bias ? { weight, bias: make(1, op.channels, rest, !peft, count) } : { weight });
          break;
        }
        case 'gated_norm':
          states.set(op, { weight: make(1, op.size, rest, !peft, count) });
          break;
        case 'delta_rule':
          states.set(op, {
            weight: make(1, op.heads, rest, !peft, count),
            bias: make(1, op.heads, rest, !peft, count),
          });
          break;
        case 'chunk_scan':
          states.set(op, { scan: [0, 1, 2].map(() => make(1, op.heads, rest, !peft, count)) });
          break;
        case 'moe':
          states.set(op, loops(op) ? { looped: loopedState(op, at, count) } : { moe: moeState(op, count) });
          break;
        default:
      }
    });

  const bytesSoFar = (): number =>
    groups.reduce((total, group) => total + group.parameter.bytes * group.count, quantisedBytes);

  const addStack = (stack: Stack, root: string): number[] => {
    addOps(stack.embedding, root, 1);
    const bytes = stack.kinds.map((ops, kind) => {
      const count = stack.layers.filter((entry) => entry === kind).length;
      const before = bytesSoFar();
      addOps(ops, `${stack.layersPath}.0`, count);
      return count === 0 ? 0 : (bytesSoFar() - before) / count;
    });
    addOps(stack.final, root, 1);
    return bytes;
  };

  const { encoder } = description;
  const encoderKindBytes = encoder ? addStack(encoder, parentOf(encoder.layersPath)) : [];
  const kindBytes = addStack(description, description.rootPath ?? parentOf(description.layersPath));
  const layerBytes =
    description.layers.reduce((total, kind) => total + kindBytes[kind]!, 0) +
    (encoder?.layers ?? []).reduce((total, kind) => total + encoderKindBytes[kind]!, 0);
  const beforeIdle = groups.length;
  for (const { path, ops, count } of description.idle ?? []) addOps(ops, path, count);
  const idle = new Set(groups.slice(beforeIdle));

  const tokenHead = (): ParameterPlan['head'] => {
    const { head: headOp } = description;
    const inFeatures = headOp.inFeatures ?? description.hiddenSize;
    addOps(headOp.transform ?? [], '', 1);
    const embedded = states.get(firstTable(description))!;
    const tiedWeight = embedded.frozenCopy ?? embedded.weight!;
    const weight = headOp.tied ? tiedWeight : makeLinear(description.vocabSize, inFeatures, rest, 1, headOp.name);
    const bias = headOp.bias ? make(1, description.vocabSize, rest, !peft, 1) : undefined;
    const plain: ParameterPlan['head'] = { weight, quantised: undefined, bias, adapter: undefined };
    if (adapters.trainsCopyOf(headOp.name)) {
      const copy = make(description.vocabSize, inFeatures, rest, true, 1);
      return { ...plain, weight: copy, frozenCopy: weight };
    }
    if (headOp.tied && tiedWeight === embedded.weight && tiedWeight.tensor.node) {
      tiedWeight.tensor.node.leaf!.uses += 1;
    }
    const shape: LinearOp = {
      op: 'linear',
      name: headOp.name,
      inFeatures,
      outFeatures: description.vocabSize,
      bias: headOp.bias,
      form: 'linear',
      input: '',
      output: '',
    };
    const adapter = adapters.forLinear(shape, headOp.name, (rows, columns, dtype) =>
      make(rows, columns, dtype, true, 1),
    );
    if (adapter) matchedTargets += 1;
    return { ...plain, adapter };
  };
  let head: ParameterPlan['head'] = { weight: undefined, quantised: undefined, bias: undefined, adapter: undefined };
  if (scoring) addOps(scoring, '', 1, true);
  else head = tokenHead();
  for (const { rows, columns } of virtualTokenShapes(description, values)) make(rows, columns, F32, true, 1);
  const residentBytes = bytesSoFar();
  return {
    states,
    head,
    groups,
    idle,
    quantisedBytes,
    largestQuantised,
    rootBytes: residentBytes - layerBytes,
    kindBytes: [...kindBytes, ...encoderKindBytes],
    residentBytes,
    trainable: groups.reduce(
      (total, group) => total + (group.parameter.trainable ? group.parameter.elements * group.count : 0),
      0,
    ),
    matchedTargets,
  };
}

/** A layer that runs twice a pass: its gradients are complete with the second. */
function useTwice({ weight, bias, adapter }: LinearState): void {
  const low = adapter && adapter.kind !== 'ia3' ? [adapter.a, adapter.b, adapter.magnitude] : [];
  for (const parameter of [weight, bias, ...low]) {
    const leaf = parameter?.tensor.node?.leaf;
    if (leaf) leaf.uses += 1;
  }
}

const parentOf = (path: string): string => path.split('.').slice(0, -1).join('.');

/** The token table that a tied head and shared tables stand for. */
function firstTable({ encoder, embedding }: ModelDescription): Op {
  let found: Op | undefined;
  visitOps([...(encoder?.embedding ?? []), ...embedding], '', (op) => {
    if (!found && op.op === 'embedding' && op.by === 'tokens') found = op;
  });
  if (!found) throw new Error('the description has no token embedding');
  return found;
}
