import type { ModelDescription } from '../../model/index.ts';
import type { GradientCheckpointing } from '../../spec/index.ts';
import { type Context, endAutocast, type Frame } from '../rules/context.ts';
import { runOps } from '../rules/run-ops.ts';
import { Buffer, type Dtype, Node, owner, roundUp, type Segment, Tensor, widthOf } from '../tape/tape.ts';

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
  /** The input was freed with the forward pass: nothing keeps it. */
  readonly inputFreed: boolean;
}

/** Summaries of layers, made when first asked for. */
export class Layers {
  private readonly known: { key: string; summary: LayerSummary }[] = [];

  constructor(
    private readonly ctx: Context,
    private readonly description: ModelDescription,
    private readonly checkpointing: GradientCheckpointing,
    private readonly holdsInputs = false,
  ) {}

  /** `index` counts layers from the first. */
  summary(index: number, input: Input): LayerSummary {
    const kind = this.description.layers[index]!;
    const { enabled, everyNLayers } = this.checkpointing;
    const checkpointed = enabled && index % everyNLayers === 0;
    const key = `${kind}/${checkpointed}/${input.dtype}/${input.needsGrad}`;
    const found = this.known.find((entry) => entry.key === key);
    if (found) return found.summary;
    const summary = checkpointed ? this.checkpointed(kind, input) : this.plain(kind, input);
    this.known.push({ key, summary });
    return summary;
  }

  /** The layer's input as the previous layer left it: alive, not counted in this segment. */
  private input({ dtype, needsGrad }: Input): Tensor {
    const { batch, tokens } = this.ctx;
    const elements = batch * tokens * this.description.hiddenSize;
    const buffer = new Buffer(roundUp(elements * widthOf(dtype)), ACTIVATIONS);
    return new Tensor(buffer, elements, dtype, needsGrad ? new Node(elements, dtype, () => {}) : null);
  }

  private forward(kind: number, x: Tensor): Tensor {
    const { ctx } = this;
    const frame: Frame = new Map([['hidden_states', ctx.tape.hold(x)]]);
    runOps(ctx, this.description.kinds[kind]!, frame);
    const output = frame.get('hidden_states')!;
    frame.delete('hidden_states');
    for (const value of frame.values()) ctx.tape.drop(value);
    return output;
  }

  /** The output's gradient as the next layer left it: alive, not counted in this segment. */
  private receive(output: Tensor): void {
    if (!output.node) return;
    const grad = new Buffer(roundUp(output.elements * widthOf(output.dtype)), TEMPORARY);
    output.node.grad = grad;
  }

  private plain(kind: number, input: Input): LayerSummary {
    const { ctx } = this;
    const { tape } = ctx;
    tape.nodes = [];
    tape.owner = ACTIVATIONS;
    tape.begin();
    const x = this.input(input);
    const output = this.forward(kind, x);
    tape.drop(x);
    const forward = tape.end();
    const inputFreed = x.buffer.refs === 0;
    tape.begin();
    endAutocast(ctx);
    const autocastEnd = tape.end();
    tape.begin();
    this.receive(output);
    // The output belongs to the next layer; only its gradient matters here.
    tape.owner = TEMPORARY;
    tape.backward();
    const backward = tape.end();
    return { forward, autocastEnd, backward, inputFreed, output: describe(output) };
  }

  private checkpointed(kind: number, input: Input): LayerSummary {
    const { ctx, checkpointing } = this;
    const { tape } = ctx;
    tape.nodes = [];
    tape.owner = ACTIVATIONS;
    tape.discarding = true;
    tape.saves = 0;
    tape.begin();
    const x = this.input(input);
    const output = this.forward(kind, x);
    // The boundary stays on the device unless it is offloaded.
    if (checkpointing.offload) tape.drop(x);
    const forward = tape.end();
    const saves = tape.saves;
    tape.discarding = false;
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
      recomputed = this.forward(kind, again);
      tape.stopAt = Number.POSITIVE_INFINITY;
      endAutocast(ctx);
      if (!checkpointing.useReentrant) tape.drop(recomputed);
      tape.owner = owner;
      return tape.nodes;
    };
    let again: Tensor = x;
    let recomputed: Tensor | undefined;
    this.receive(output);
    tape.owner = TEMPORARY;
    if (checkpointing.useReentrant) {
      // The block's own backward runs on the recomputed graph; its output and the gradient it got last until the end.
      const incoming = output.node?.grad;
      if (incoming) incoming.refs += 1;
      const graph = recompute();
      if (recomputed?.node) recomputed.node.grad = output.node?.grad ?? null;
      tape.backward(graph);
      if (recomputed) tape.drop(recomputed);
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
    const backward = tape.end();
    return { forward, autocastEnd, backward, inputFreed: checkpointing.offload, output: describe(output) };
  }
}

const describe = (output: Tensor): Input => ({ dtype: output.dtype, needsGrad: output.node !== null });
