import { type AllocationLog, FIRST_ID, PRODUCT_ID, UNIT } from '../allocator/script.ts';
import { TERM_NAMES, type TermName } from '../estimate.ts';
import { type Dtype, widthOf } from './dtypes.ts';

export * from './dtypes.ts';

/** Index of a term in a vector of owners. */
export const owner = (name: TermName): number => TERM_NAMES.indexOf(name);
export const OWNERS: number = TERM_NAMES.length;
const GRADIENTS = owner('gradients');

const NO_OWNERS = new Float64Array(OWNERS);

/** The CUDA caching allocator hands out multiples of 512 bytes. */
export const roundUp = (bytes: number): number => Math.ceil(bytes / 512) * 512;

/** One storage: freed when the last name, saved reference or gradient slot lets go. */
export class Buffer {
  refs = 1;
  /** Name in the recording of allocations, 0: not recorded. */
  id = 0;
  /** Heads before tokens in memory: viewing it as (batch, tokens, heads × dim) needs a copy. */
  headMajor = false;

  constructor(
    readonly bytes: number,
    public owner: number,
  ) {}
}

/** A view of a buffer with what autograd knows of it; `node` is set when it needs a gradient. */
export class Tensor {
  constructor(
    readonly buffer: Buffer,
    readonly elements: number,
    readonly dtype: Dtype,
    readonly node: Node | null,
  ) {}
}

/** A parameter's gradient and how often a pass still adds to it. */
export interface Leaf {
  /** Uses in one pass: 2 for a tied embedding. */
  uses: number;
  arrived: number;
  pending: Buffer | null;
}

/** `true` as the result: it has let go of the gradient itself. */
export type Backward = (grad: Buffer) => unknown;

/** What was running: an op of the description, for people. */
export interface Place {
  readonly op: string;
  readonly name?: string;
}

/** One autograd function. Its backward takes the gradient of its output and gives gradients to its inputs. */
export class Node {
  grad: Buffer | null = null;
  saved: Buffer[] | null = null;
  leaf: Leaf | null = null;
  /** Its backward needs something kept, even if a checkpoint has thrown it away. */
  keeps = false;
  /** The op that made it. */
  at: Place | undefined;

  constructor(
    readonly elements: number,
    readonly dtype: Dtype,
    readonly backward: Backward | null,
  ) {}
}

/** What one stretch of the step did to memory, relative to its start, by owner. */
export interface Segment {
  /** Highest sum over the start. */
  readonly peak: number;
  readonly peakOwners: Float64Array;
  /** What it left behind in all (negative: freed). */
  readonly end: number;
  readonly endOwners: Float64Array;
  readonly log: AllocationLog | null;

  /** What ran when it was highest. */
  readonly at: Place | undefined;
}

/**
 * Follows the memory of PyTorch's eager mode: tensors live as long as something refers to them, nodes keep what their
 * backward needs, the engine runs nodes in the reverse order of their creation.
 */
export class Tape {
  /** Owner of what is allocated now. */
  owner = 0;
  /** What runs now. */
  at: Place | undefined;
  private peakAt: Place | undefined;
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
  update: ((node: Node) => number) | undefined;
  nodes: Node[] = [];
  /** The running node, where it holds its values by a saved-tensor hook (a checkpointed block). */
  private unpacked: Node | null = null;
  /** Allocations and frees since `begin` with their units, when recorded. */
  log: number[] | null = null;
  /** A product has run since `begin`. */
  private multiplied = false;
  private nextId = FIRST_ID;
  private complete: (Node | Buffer)[] = [];
  private live = new Float64Array(OWNERS);
  private total = 0;
  private peak = 0;
  /** The peak is now: its owners are copied when the first of them goes. */
  private peaking = false;
  private peakOwners = NO_OWNERS;

  begin(): void {
    if (this.log !== null) this.log = [];
    this.multiplied = false;
    this.live = new Float64Array(OWNERS);
    this.peakOwners = NO_OWNERS;
    this.peaking = false;
    this.total = 0;
    this.peak = 0;
    this.at = undefined;
    this.peakAt = undefined;
  }

  end(): Segment {
    if (this.peaking) this.keepPeak();
    return {
      peak: this.peak,
      peakOwners: this.peakOwners,
      end: this.total,
      endOwners: this.live,
      log: this.log,
      at: this.peakAt,
    };
  }

  /** Bytes alive since `begin`. */
  held(): number {
    return this.total;
  }

  private add(bytes: number, to: number): void {
    this.live[to]! += bytes;
    this.total += bytes;
    if (this.total > this.peak) {
      this.peak = this.total;
      this.peakAt = this.at;
      this.peaking = true;
    }
  }

  private keepPeak(): void {
    this.peaking = false;
    this.peakOwners = this.live.slice();
  }

  bytes(bytes: number, to = this.owner): Buffer {
    const size = this.saves >= this.stopAt ? 0 : roundUp(bytes);
    this.add(size, to);
    const buffer = new Buffer(size, to);
    if (size > 0 && this.log !== null) {
      buffer.id = this.nextId;
      this.nextId += 1;
      this.log.push(buffer.id, size / UNIT);
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
    const buffer = this.alloc(elements, dtype);
    buffer.headMajor = like.headMajor;
    return buffer;
  }

  release(buffer: Buffer): void {
    buffer.refs -= 1;
    if (buffer.refs === 0) {
      if (this.peaking) this.keepPeak();
      this.live[buffer.owner]! -= buffer.bytes;
      this.total -= buffer.bytes;
      if (buffer.id !== 0 && this.log !== null) this.log.push(-buffer.id, buffer.bytes / UNIT);
    }
  }

  /** Moves what a buffer counts for: a gradient handed from the loss to the layers is no logits any more. */
  reown(buffer: Buffer, to: number): void {
    if (this.peaking) this.keepPeak();
    this.live[buffer.owner]! -= buffer.bytes;
    this.live[to]! += buffer.bytes;
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

  /** A node that will run in the backward pass; null when none of the inputs needs a gradient. */
  node(elements: number, dtype: Dtype, backward: Backward): Node | null {
    if (this.noGrad) return null;
    const node = new Node(elements, dtype, backward);
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

  noGradEnd(outer: Node[]): void {
    for (const node of this.nodes) {
      if (node.saved) for (const buffer of node.saved) this.release(buffer);
    }
    this.nodes = outer;
  }

  /** Keeps a buffer for the backward pass of `node`; null: something without memory of its own (a parameter, a number). */
  save(node: Node | null, buffer: Buffer | null): void {
    if (node === null) return;
    this.saves += 1;
    node.keeps = true;
    if (this.discarding || buffer === null) return;
    buffer.refs += 1;
    if (node.saved) node.saved.push(buffer);
    else node.saved = [buffer];
  }

  /** Releases what the running node has unpacked, if it came from a recomputation: its results are checked after that. */
  endOfApply(): void {
    const node = this.unpacked;
    if (!node?.saved) return;
    for (const buffer of node.saved) this.release(buffer);
    node.saved = null;
  }

  /** Hands a gradient to a node; ownership goes with it. A second one is added into a third, as the engine does. */
  give(node: Node, grad: Buffer): void {
    if (this.unpacked) this.endOfApply();
    if (node.leaf) {
      // AccumulateGrad is a node of its own: it runs once the one that made the gradient has let go of its own values.
      this.complete.push(node, grad);
    } else if (node.grad === null) {
      node.grad = grad;
    } else {
      // The engine adds once the function that made it has returned and let go of its own values.
      this.complete.push(node, grad);
    }
  }

  private flush(): void {
    const waiting = this.complete;
    this.complete = [];
    for (let i = 0; i < waiting.length; i += 2) {
      const node = waiting[i] as Node;
      const grad = waiting[i + 1] as Buffer;
      if (node.leaf) this.accumulate(node, node.leaf, grad);
      else node.grad = node.grad ? this.sum(node, node.grad, grad) : grad;
    }
  }

  private sum(node: Node, first: Buffer, second: Buffer): Buffer {
    const result = this.alloc(node.elements, node.dtype);
    result.headMajor = first.headMajor;
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
      if (this.peaking) this.keepPeak();
      // AccumulateGrad takes the buffer over: it stays until the optimizer has run.
      this.live[sum.owner]! -= sum.bytes;
      this.live[GRADIENTS]! += sum.bytes;
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
        nodes.forEach((target, index) => {
          target.saved = holders[index]!.saved;
        });
      }
      const grad = node.grad;
      if (grad !== null) {
        node.grad = null;
        this.at = node.at;
        this.unpacked = hooked ? node : null;
        if (node.backward!(grad) !== true) this.release(grad);
        this.unpacked = null;
      }
      if (node.saved) {
        for (const buffer of node.saved) this.release(buffer);
        node.saved = null;
      }
      if (this.complete.length > 0) this.flush();
    }
    nodes.length = 0;
  }
}
