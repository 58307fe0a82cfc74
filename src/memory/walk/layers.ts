import type { Stack } from '../../model/index.ts';
import type { GradientCheckpointing } from '../../spec/index.ts';
import { GRADIENT_ID, INPUT_ID } from '../allocator/script.ts';
import { type Context, endAutocast, type Frame } from '../rules/context.ts';
import { runOps } from '../rules/run-ops.ts';
import { endHere } from '../tape/gradients.ts';
import { Buffer, type Dtype, Node, owner, type Segment, Tensor, widthOf } from '../tape/tape.ts';
import type { SharedWeights } from './shared-weights.ts';
import { upstreamOf } from './upstream.ts';

const ACTIVATIONS = owner('activations');
const TEMPORARY = owner('temporaryBuffers');

/** What enters a layer. */
interface Input {
  readonly dtype: Dtype;
  readonly needsGrad: boolean;
}

/** One layer's part of a step, the same for every layer of its kind, treatment and input. */
export interface LayerSummary {
  readonly forward: Segment;
  /** What leaving autocast frees of it. */
  readonly autocastEnd: Segment;
  readonly backward: Segment;
  readonly output: Input;
  /** Ids of the output and of the input's gradient in the recordings. */
  readonly outputId: number;
  readonly gradientId: number;
  /** The input was freed with the forward pass: nothing keeps it. */
  readonly inputFreed: boolean;
  /** What a repeated forward pass leaves until the backward pass has ended, bytes; part of `backward`. */
  readonly lingeringBytes: number;
  /** Eager attention weights that go back to the model's loop and are kept by nothing else, bytes. */
  readonly weightsBytes: number;
}

/** A value that several layers read: alive outside their segments. */
export interface Shared {
  readonly elements: number;
  readonly dtype: Dtype;
  readonly needsGrad: boolean;
}

const NOTHING: ReadonlyMap<string, Tensor> = new Map();

/** Summaries of layers, made when first asked for. */
export class Layers {
  private readonly known = new Map<number, LayerSummary>();
  /** What layers read beside `hidden_states`, by name. */
  private readonly shared: Map<string, Shared>;

  /** Attention weights that the last layer handed back, bytes. */
  private weightsBytes = 0;

  constructor(
    private readonly ctx: Context,
    private readonly stack: Stack,
    private readonly checkpointing: GradientCheckpointing,
    private readonly holdsInputs = false,
    shared: ReadonlyMap<string, Shared> = new Map(),
    private readonly weights?: SharedWeights,
  ) {
    this.shared = new Map(shared);
  }

  /** `index` counts layers from the first. */
  summary(index: number, input: Input): LayerSummary {
    const kind = this.stack.layers[index]!;
    const { enabled, everyNLayers } = this.checkpointing;
    const checkpointed = enabled && index % everyNLayers === 0;
    // The first layer to run backward makes the gradients of shared values, the others add to them.
    const last = index === this.stack.layers.length - 1;
    const apart = this.shared.size > 0 || this.stack.sharesWeights === true;
    const told = apart ? (last ? 2 : 1) : 0;
    const key = (((kind * 3 + told) * 2 + Number(checkpointed)) * 3 + input.dtype) * 2 + Number(input.needsGrad);
    let summary = this.known.get(key);
    if (!summary) {
      summary = checkpointed ? this.checkpointed(kind, input, last) : this.plain(kind, input, last);
      this.known.set(key, summary);
    }
    return summary;
  }

  /** The layer's input as the previous layer left it: alive, not counted in this segment. */
  private input({ dtype, needsGrad }: Input): Tensor {
    const { batch, tokens } = this.ctx;
    const elements = batch * tokens * this.stack.hiddenSize * (this.stack.streams ?? 1);
    const buffer = outside(elements, dtype, ACTIVATIONS);
    buffer.id = INPUT_ID;
    return new Tensor(buffer, elements, dtype, needsGrad ? new Node(elements, dtype, endHere) : null);
  }

  /** Values shared with other layers, made anew for every segment: alive, not counted in it. */
  private readShared(): ReadonlyMap<string, Tensor> {
    if (this.shared.size === 0) return NOTHING;
    const tensors = new Map<string, Tensor>();
    for (const [name, { elements, dtype, needsGrad }] of this.shared) {
      const node = needsGrad ? new Node(elements, dtype, endHere) : null;
      tensors.set(name, new Tensor(outside(elements, dtype, ACTIVATIONS), elements, dtype, node));
    }
    return tensors;
  }

  /** `carried` gets what this layer leaves for the later ones; what a repeated forward makes of it ends with the graph. */
  private forward(kind: number, x: Tensor, shared: ReadonlyMap<string, Tensor>, carried: Map<string, Tensor>): Tensor {
    const { ctx } = this;
    const frame: Frame = new Map([['hidden_states', ctx.tape.hold(x)]]);
    for (const [name, value] of shared) frame.set(name, ctx.tape.hold(value));
    runOps(ctx, this.stack.kinds[kind]!, frame);
    const output = frame.get('hidden_states')!;
    frame.delete('hidden_states');
    this.weightsBytes = (frame.get('attn_weights') ?? frame.get('_'))?.buffer.bytes ?? 0;
    for (const [name, value] of frame) {
      if (this.stack.carried?.includes(name) && !shared.has(name)) carried.set(name, value);
      else ctx.tape.drop(value);
    }
    return output;
  }

  /** Later layers have left gradients of what this one made or reads. */
  private receiveShared(values: Iterable<Tensor>): void {
    for (const { node, elements, dtype } of values) {
      if (node && !node.grad) node.grad = outside(elements, dtype, TEMPORARY);
    }
  }

  /** The output's gradient as the next layer left it: alive, not counted in this segment. */
  private receive(output: Tensor): void {
    if (!output.node) return;
    const grad = outside(output.elements, output.dtype, TEMPORARY);
    grad.id = GRADIENT_ID;
    output.node.grad = grad;
  }

  /** Holds what carried values were made of in this pass; bytes. */
  private linger(kind: number, nodes: readonly Node[], values: Iterable<Tensor>): number {
    const { carried = [], carriedLinger, kinds } = this.stack;
    if (!carriedLinger) return 0;
    const held = new Set<Buffer>();
    // A reentrant block's backward pass runs through this graph and frees what it keeps: the values alone are left.
    if (this.checkpointing.useReentrant) for (const { buffer } of values) held.add(buffer);
    else {
      const ops: ReadonlySet<unknown> = upstreamOf(kinds[kind]!, carried);
      for (const { at, saved } of nodes) if (saved && ops.has(at)) for (const buffer of saved) held.add(buffer);
    }
    let bytes = 0;
    for (const buffer of held) {
      buffer.refs += 1;
      bytes += buffer.bytes;
    }
    return bytes;
  }

  private remember(carried: ReadonlyMap<string, Tensor>): void {
    for (const [name, { elements, dtype, node }] of carried) {
      this.shared.set(name, { elements, dtype, needsGrad: node !== null });
    }
  }

  private plain(kind: number, input: Input, last: boolean): LayerSummary {
    const { ctx } = this;
    const shared = this.readShared();
    const carried = new Map<string, Tensor>();
    const { tape } = ctx;
    tape.nodes = [];
    tape.owner = ACTIVATIONS;
    tape.begin();
    const x = this.input(input);
    const lent = this.weights?.lend(ctx) ?? [];
    const output = this.forward(kind, x, shared, carried);
    this.weights?.takeBack(ctx);
    tape.drop(x);
    const forward = tape.end();
    this.remember(carried);
    const inputFreed = x.buffer.refs === 0;
    tape.begin();
    endAutocast(ctx);
    const autocastEnd = tape.end();
    tape.begin();
    this.receive(output);
    if (!last) this.receiveShared([...shared.values(), ...carried.values(), ...lent]);
    // The output belongs to the next layer; only its gradient matters here.
    tape.owner = TEMPORARY;
    const { gradientsExist } = tape;
    if (this.stack.sharesWeights && !last) tape.gradientsExist = true;
    tape.backward();
    tape.gradientsExist = gradientsExist;
    for (const value of carried.values()) tape.drop(value);
    const backward = tape.end();
    return {
      forward,
      autocastEnd,
      backward,
      inputFreed,
      weightsBytes: tape.noGrad ? this.weightsBytes : 0,
      lingeringBytes: 0,
      output: describe(output),
      outputId: output.buffer.id,
      gradientId: x.node?.grad?.id ?? 0,
    };
  }

  private checkpointed(kind: number, input: Input, last: boolean): LayerSummary {
    const { ctx, checkpointing } = this;
    const shared = this.readShared();
    const carried = new Map<string, Tensor>();
    const recarried = new Map<string, Tensor>();
    const { tape } = ctx;
    tape.nodes = [];
    tape.owner = ACTIVATIONS;
    tape.discarding = true;
    tape.contexts = checkpointing.useReentrant ? 'none' : 'kept';
    tape.saves = 0;
    tape.begin();
    const x = this.input(input);
    const output = this.forward(kind, x, shared, carried);
    // The boundary stays on the device unless it is offloaded.
    if (checkpointing.offload) tape.drop(x);
    const forward = tape.end();
    const { weightsBytes } = this;
    const saves = tape.saves;
    tape.discarding = false;
    tape.contexts = 'kept';
    const contexts: Buffer[] = [];
    this.remember(carried);
    tape.begin();
    endAutocast(ctx);
    const autocastEnd = tape.end();

    const nodes = tape.nodes;
    tape.begin();
    const recompute = (): Node[] => {
      const { owner } = tape;
      tape.owner = ACTIVATIONS;
      tape.nodes = [];
      tape.saves = 0;
      again = checkpointing.offload ? new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, x.node) : x;
      if (!checkpointing.useReentrant) tape.stopAt = saves;
      tape.contexts = checkpointing.useReentrant ? contexts : 'none';
      recomputed = this.forward(kind, again, shared, recarried);
      if (recarried.size > 0) lingering = this.linger(kind, tape.nodes, recarried.values());
      for (const value of recarried.values()) tape.drop(value);
      tape.stopAt = Number.POSITIVE_INFINITY;
      tape.contexts = 'kept';
      endAutocast(ctx);
      if (!checkpointing.useReentrant) tape.drop(recomputed);
      tape.owner = owner;
      return tape.nodes;
    };
    let again: Tensor = x;
    let lingering = 0;
    let recomputed: Tensor | undefined;
    this.receive(output);
    if (!last) this.receiveShared([...shared.values(), ...carried.values()]);
    tape.owner = TEMPORARY;
    if (checkpointing.useReentrant) {
      // The block's own backward runs on the recomputed graph; its output and the gradient it got last until the end.
      const incoming = output.node?.grad;
      if (incoming) incoming.refs += 1;
      const graph = recompute();
      if (recomputed?.node) recomputed.node.grad = output.node?.grad ?? null;
      tape.backward(graph);
      if (recomputed) tape.drop(recomputed);
      for (const buffer of contexts) tape.release(buffer);
      if (incoming) tape.release(incoming);
    } else {
      tape.backward(nodes, recompute);
    }
    tape.drop(again);
    if (this.holdsInputs && input.needsGrad) {
      tape.owner = ACTIVATIONS;
      tape.bytes(x.buffer.bytes);
      tape.bytes(x.buffer.bytes);
    }
    for (const value of carried.values()) tape.drop(value);
    const backward = tape.end();
    return {
      forward,
      autocastEnd,
      backward,
      inputFreed: checkpointing.offload,
      lingeringBytes: lingering,
      weightsBytes,
      output: describe(output),
      outputId: output.buffer.id,
      gradientId: x.node?.grad?.id ?? 0,
    };
  }
}

/** A tensor that another segment has counted. */
export const outside = (elements: number, dtype: Dtype, to: number): Buffer =>
  new Buffer(elements * widthOf(dtype), to);

const describe = (output: Tensor): Input => ({ dtype: output.dtype, needsGrad: output.node !== null });
