import { UNIT } from '../allocator/script.ts';
import type { Dtype } from './dtypes.ts';
import type { Tape } from './tape.ts';

/** The CUDA caching allocator hands out multiples of 512 bytes. */
export const roundUp = (bytes: number): number => Math.ceil(bytes / UNIT) * UNIT;

/** One storage: freed when the last name, saved reference or gradient slot lets go. */
export class Buffer {
  refs = 1;
  /** Name in the recording of allocations, 0: not recorded. */
  id = 0;
  /** Heads before tokens in memory: viewing it as (batch, tokens, heads × dim) needs a copy. */
  headMajor = false;
  /** What the allocator hands out for it: a small integer, however large the tensor. */
  readonly units: number;

  constructor(
    bytes: number,
    public owner: number,
  ) {
    this.units = Math.ceil(bytes / UNIT);
  }

  /** Rounded as the allocator does. */
  get bytes(): number {
    return this.units * UNIT;
  }
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

/**
 * Takes the gradient of a node's output and gives gradients to its inputs. `true` as the result: it has let go of the gradient
 * itself. Functions that run for every layer read their inputs from the node, for that is cheaper than a closure for each use.
 */
export type Backward = (grad: Buffer, node: Node, tape: Tape) => unknown;

/** What was running: an op of the description, for people. */
export interface Place {
  readonly op: string;
  readonly name?: string;
}

/** One autograd function. */
export class Node {
  grad: Buffer | null = null;
  saved: Buffer[] | null = null;
  leaf: Leaf | null = null;
  /** Its backward needs something kept, even if a checkpoint has thrown it away. */
  keeps = false;
  /** The op that made it. */
  at: Place | undefined = undefined;

  constructor(
    readonly elements: number,
    readonly dtype: Dtype,
    readonly backward: Backward | null,
    /** Inputs that `backward` asks for. */
    readonly a: Tensor | null = null,
    readonly b: Tensor | null = null,
  ) {}
}
