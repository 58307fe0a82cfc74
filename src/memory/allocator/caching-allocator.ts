import { MiB } from '../../core/index.ts';
import { FreeBlocks } from './free-blocks.ts';

/** The CUDA caching allocator hands out multiples of 512 bytes; sizes are counted in these here. */
const UNIT = 512;
/** Requests up to this go to the small pool. */
export const SMALL = MiB;
const SMALL_UNITS = SMALL / UNIT;
const SMALL_SEGMENT = (2 * MiB) / UNIT;
const LARGE_FROM = (10 * MiB) / UNIT;
const LARGE_SEGMENT = (20 * MiB) / UNIT;
const ROUND_LARGE = (2 * MiB) / UNIT;

/** What an allocation is given back by: the number of its block, or of a small one its units, negative. */
export type Allocation = number;

/**
 * PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, defaults): requests of more than 1 MiB come from segments of 20
 * MiB, or of their own size rounded to 2 MiB from 10 MiB on; the smallest free block that is large enough is taken, among equal ones
 * that of the lowest address, and split when more than 1 MiB would be left; neighbours that are free grow together; a block serves
 * only the stream it was made for; nothing goes back to the driver. Smaller requests fill segments of 2 MiB and are only summed up.
 *
 * Tens of thousands of requests are played for one estimate, so blocks are numbers into columns and not objects. A block's
 * neighbours are those of its segment, 0: none.
 */
export class CachingAllocator {
  private reservedUnits = 0;
  private small = 0;
  private smallReserved = 0;
  private blocks = 1;
  private nextAddress = 0;
  private size = new Int32Array(1024);
  private previous = new Int32Array(1024);
  private next = new Int32Array(1024);
  private address = new Float64Array(1024);
  /** Stream of a block that is free, −1: it is in use. */
  private freeIn = new Int8Array(1024);
  private stream = new Int8Array(1024);
  /** Numbers of blocks that were joined to others. */
  private readonly unused: number[] = [];
  private readonly free: FreeBlocks[] = [];

  /** Bytes taken from the driver so far. */
  get reserved(): number {
    return this.reservedUnits * UNIT;
  }

  /** `bytes` are rounded up to 512. Returns what `release` wants. */
  allocate(bytes: number, stream = 0): Allocation {
    const units = Math.ceil(bytes / UNIT);
    if (units <= SMALL_UNITS) return this.allocateSmall(units);
    const free = this.freeOf(stream);
    const block = free.takeFrom(units) || this.newSegment(units, stream);
    const size = this.size[block]!;
    this.freeIn[block] = -1;
    if (size - units > SMALL_UNITS) {
      const rest = this.newBlock(size - units, this.address[block]! + units, stream);
      const after = this.next[block]!;
      this.previous[rest] = block;
      this.next[rest] = after;
      this.previous[after] = rest;
      this.next[block] = rest;
      this.size[block] = units;
      free.insert(rest, size - units);
    }
    return block;
  }

  /** A segment from the driver for `bytes` of more than 1 MiB, whatever is free. */
  segment(bytes: number, stream = 0): Allocation {
    const block = this.newSegment(Math.ceil(bytes / UNIT), stream);
    this.freeIn[block] = -1;
    return block;
  }

  release(allocation: Allocation): void {
    if (allocation <= 0) {
      this.small += allocation;
      return;
    }
    const { size, previous, next, freeIn } = this;
    const stream = this.stream[allocation]!;
    const free = this.freeOf(stream);
    let block = allocation;
    let joined = size[block]!;
    const after = next[block]!;
    if (after !== 0 && freeIn[after]! >= 0) {
      free.remove(after, size[after]!);
      joined += size[after]!;
      this.unlink(block, after);
    }
    const before = previous[block]!;
    if (before !== 0 && freeIn[before]! >= 0) {
      free.remove(before, size[before]!);
      joined += size[before]!;
      this.unlink(before, block);
      block = before;
    }
    size[block] = joined;
    freeIn[block] = stream;
    free.insert(block, joined);
  }

  private allocateSmall(units: number): Allocation {
    this.small += units;
    while (this.smallReserved < this.small) {
      this.smallReserved += SMALL_SEGMENT;
      this.reservedUnits += SMALL_SEGMENT;
    }
    return -units;
  }

  /** `second` becomes part of `first`, which stands before it. */
  private unlink(first: number, second: number): void {
    const after = this.next[second]!;
    this.next[first] = after;
    this.previous[after] = first;
    this.unused.push(second);
  }

  private newSegment(units: number, stream: number): number {
    const size = units < LARGE_FROM ? LARGE_SEGMENT : Math.ceil(units / ROUND_LARGE) * ROUND_LARGE;
    this.reservedUnits += size;
    this.nextAddress += size;
    return this.newBlock(size, this.nextAddress - size, stream);
  }

  private newBlock(size: number, address: number, stream: number): number {
    const block = this.unused.pop() ?? this.blocks++;
    if (block === this.size.length) this.grow();
    this.size[block] = size;
    this.previous[block] = 0;
    this.next[block] = 0;
    this.address[block] = address;
    this.stream[block] = stream;
    this.freeIn[block] = stream;
    return block;
  }

  private freeOf(stream: number): FreeBlocks {
    while (stream >= this.free.length) this.free.push(new FreeBlocks(this.address));
    return this.free[stream]!;
  }

  private grow(): void {
    const longer = <T extends Int8Array | Int32Array | Float64Array>(column: T): T => {
      const grown = new (column.constructor as new (length: number) => T)(column.length * 2);
      grown.set(column);
      return grown;
    };
    this.size = longer(this.size);
    this.previous = longer(this.previous);
    this.next = longer(this.next);
    this.address = longer(this.address);
    for (const free of this.free) free.setAddresses(this.address);
    this.stream = longer(this.stream);
    this.freeIn = longer(this.freeIn);
  }
}
