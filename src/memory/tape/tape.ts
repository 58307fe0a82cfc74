import { FIRST_ID, PRODUCT_ID, UNIT } from '../allocator/script.ts';
import { type Dtype, widthOf } from './dtypes.ts';
import { Meter, owner, type Segment } from './meter.ts';
import { type Backward, Buffer, type Leaf, Node, type Place, type Tensor } from './tensor.ts';

export * from './dtypes.ts';
export * from './meter.ts';
export * from './tensor.ts';

const GRADIENTS = owner('gradients');

/**
 * Follows the memory of PyTorch's eager mode: tensors live as long as something refers to them, nodes keep what their
 * backward needs, the engine runs nodes in the reverse order of their creation.
 */
export class Tape {
  /** Owner of what is allocated now. */
  owner = 0;
  /** What runs now. */
  at: Place | undefined = undefined;
  /** Forward of a checkpointed block: nodes are recorded, what they would keep is only counted. */
  discarding = false;
  /** Dropout masks are bytes (CUDA). */
  byteMasks = false;
  /**
   * What functions keep in attributes of their own, past the hooks of checkpointing: `kept` with the whole graph, `none` where
   * no graph stays, or a list for a graph that ends with its layer.
   */
  contexts: 'kept' | 'none' | Buffer[] = 'kept';
  /** torch.no_grad: no node is made. */
  noGrad = false;
  /** Saves seen in the block that is being recorded. */
  saves = 0;
  /** Non-reentrant recomputation ends at this save; later allocations do not happen. */
  stopAt = Number.POSITIVE_INFINITY;
  /** Gradients of earlier micro batches exist: new ones are added in place and freed. */
  gradientsExist = false;
  /** The optimizer runs inside the backward pass: what updating a parameter makes beside its gradient, bytes. */
  update: ((node: Node) => number) | undefined = undefined;
  nodes: Node[] = [];
  /** The running node, where it holds its values by a saved-tensor hook (a checkpointed block). */
  private unpacked: Node | null = null;
  /** Allocations and frees since `begin` with their units, when recorded. */
  log: number[] | null = null;
  /** A product has run since `begin`. */
  private multiplied = false;
  private nextId = FIRST_ID;
  private readonly meter = new Meter();
  /** Gradients that wait until the function that made them has let go of its own values, and for which nodes. */
  private waiting = 0;
  private readonly waitingNodes: Node[] = [];
  private readonly waitingGrads: Buffer[] = [];

  begin(): void {
    if (this.log !== null) this.log = [];
    this.multiplied = false;
    this.at = undefined;
    this.meter.begin();
  }

  end(): Segment {
    return this.meter.end(this.log);
  }

  /** Bytes alive since `begin`. */
  held(): number {
    return this.meter.total * UNIT;
  }

  bytes(bytes: number, to = this.owner): Buffer {
    const buffer = new Buffer(this.saves >= this.stopAt ? 0 : bytes, to);
    const { units } = buffer;
    this.meter.add(units, to, this.at);
    if (units > 0 && this.log !== null) {
      buffer.id = this.nextId;
      this.nextId += 1;
      this.log.push(buffer.id, units);
    }
    return buffer;
  }

  /** A matrix product runs, after its result was made. */
  product(): void {
    if (this.log === null || this.multiplied) return;
    this.multiplied = true;
    this.log.push(PRODUCT_ID, 0);
  }

  alloc(elements: number, dtype: Dtype): Buffer {
    return this.bytes(elements * widthOf(dtype));
  }

  /** Same layout as `like`. */
  allocLike(elements: number, dtype: Dtype, like: Buffer): Buffer {
    const buffer = this.bytes(elements * widthOf(dtype));
    buffer.headMajor = like.headMajor;
    return buffer;
  }

  release(buffer: Buffer): void {
    buffer.refs -= 1;
    if (buffer.refs === 0) {
      this.meter.remove(buffer);
      if (buffer.id !== 0 && this.log !== null) this.log.push(-buffer.id, buffer.units);
    }
  }

  /** Moves what a buffer counts for: a gradient handed from the loss to the layers is no logits any more. */
  reown(buffer: Buffer, to: number): void {
    this.meter.move(buffer, to);
    buffer.owner = to;
  }

  /** Lets go of a name. */
  drop(tensor: Tensor): void {
    this.release(tensor.buffer);
  }

  /** Holds a buffer for a function's own attributes. */
  holdForContext(buffer: Buffer): void {
    if (this.contexts === 'none') return;
    buffer.refs += 1;
    if (this.contexts !== 'kept') this.contexts.push(buffer);
  }

  /** One more name for the same tensor. */
  hold(tensor: Tensor): Tensor {
    tensor.buffer.refs += 1;
    return tensor;
  }

  /** A node that will run in the backward pass; null without gradients. `a` and `b`: inputs that its backward asks for. */
  node(
    elements: number,
    dtype: Dtype,
    backward: Backward,
    a: Tensor | null = null,
    b: Tensor | null = null,
  ): Node | null {
    if (this.noGrad) return null;
    const node = new Node(elements, dtype, backward, a, b);
    node.at = this.at;
    this.nodes.push(node);
    return node;
  }

  /** Records into a list that is thrown away: a graph that ends with the call it was made in. */
  noGradStart(): Node[] {
    const outer = this.nodes;
    this.nodes = [];
    return outer;
  }

  /** Goes on recording into `outer`; the graph made since, which lasts as long as the caller's name for its result. */
  noGradEnd(outer: Node[]): readonly Node[] {
    const graph = this.nodes;
    this.nodes = outer;
    return graph;
  }

  /** A graph that nobody runs has ended. */
  forget(graph: readonly Node[]): void {
    for (const node of graph) {
      if (node.saved) for (const buffer of node.saved) this.release(buffer);
      node.saved = null;
    }
  }

  /** Keeps a buffer for the backward pass of `node`; null: something without memory of its own (a parameter, a number). */
  save(node: Node | null, buffer: Buffer | null): void {
    if (node === null) return;
    this.saves += 1;
    node.keeps = true;
    if (this.discarding || buffer === null) return;
    buffer.refs += 1;
    // Most nodes keep one buffer or two: a list that grows by itself takes room for seventeen.
    if (node.saved === null) node.saved = [buffer];
    else if (node.saved.length === 1) node.saved = [node.saved[0]!, buffer];
    else node.saved.push(buffer);
  }

  /** Releases what the running node has unpacked, if it came from a recomputation: its results are checked after that. */
  endOfApply(): void {
    if (this.unpacked !== null) this.letGo(this.unpacked);
  }

  private letGo(node: Node): void {
    const { saved } = node;
    if (saved === null) return;
    for (let i = 0; i < saved.length; i += 1) this.release(saved[i]!);
    node.saved = null;
  }

  /** Hands a gradient to a node; ownership goes with it. A second one is added into a third, as the engine does. */
  give(node: Node, grad: Buffer): void {
    if (this.unpacked !== null) this.letGo(this.unpacked);
    // AccumulateGrad is a node of its own, and the engine adds once the function that made a gradient has returned.
    if (node.leaf === null && node.grad === null) node.grad = grad;
    else {
      this.waitingNodes[this.waiting] = node;
      this.waitingGrads[this.waiting] = grad;
      this.waiting += 1;
    }
  }

  private flush(): void {
    for (let i = 0; i < this.waiting; i += 1) {
      const node = this.waitingNodes[i]!;
      const grad = this.waitingGrads[i]!;
      if (node.leaf) this.accumulate(node, node.leaf, grad);
      else node.grad = node.grad ? this.sum(node, node.grad, grad) : grad;
    }
    this.waiting = 0;
  }

  private sum(node: Node, first: Buffer, second: Buffer): Buffer {
    const result = this.allocLike(node.elements, node.dtype, first);
    this.release(first);
    this.release(second);
    return result;
  }

  private accumulate(node: Node, leaf: Leaf, grad: Buffer): void {
    leaf.arrived += 1;
    const sum = leaf.pending ? this.sum(node, leaf.pending, grad) : grad;
    leaf.pending = null;
    if (leaf.arrived < leaf.uses) {
      leaf.pending = sum;
      return;
    }
    leaf.arrived = 0;
    if (this.update) {
      this.release(this.bytes(this.update(node)));
      this.release(sum);
    } else if (this.gradientsExist) {
      this.release(sum);
    } else {
      // AccumulateGrad takes the buffer over: it stays until the optimizer has run.
      this.meter.move(sum, GRADIENTS);
    }
  }

  /**
   * Runs and frees `nodes` (default: all recorded) in reverse order. `recompute` makes the kept values of a checkpointed
   * block when the first node that needs one is reached, and returns nodes like these that hold them. `hooked`: what a node
   * keeps is unpacked by a hook (non-reentrant checkpointing), and gone as soon as its own computation ends.
   */
  backward(nodes: Node[] = this.nodes, recompute?: () => readonly Node[], hooked = recompute !== undefined): void {
    let again = recompute;
    for (let i = nodes.length - 1; i >= 0; i -= 1) {
      const node = nodes[i]!;
      if (again && node.keeps) {
        const holders = again();
        again = undefined;
        for (let at = 0; at < nodes.length; at += 1) nodes[at]!.saved = holders[at]!.saved;
      }
      const grad = node.grad;
      if (grad !== null) {
        node.grad = null;
        this.at = node.at;
        this.unpacked = hooked ? node : null;
        if (node.backward!(grad, node, this) !== true) this.release(grad);
        this.unpacked = null;
      }
      this.letGo(node);
      if (this.waiting > 0) this.flush();
    }
    nodes.length = 0;
  }
}
