import { MiB } from '../../core/index.ts';

/** Requests up to this go to the small pool. */
export const SMALL = MiB;
const SMALL_SEGMENT = 2 * MiB;
const LARGE_FROM = 10 * MiB;
const LARGE_SEGMENT = 20 * MiB;
const ROUND_LARGE = 2 * MiB;

/** A stretch of a segment. Free ones stand in the free list of their stream, sorted by size, then by address. */
interface Block {
  size: number;
  readonly address: number;
  readonly stream: number;
  free: boolean;
  previous: Block | undefined;
  next: Block | undefined;
}

/**
 * PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp, defaults): requests of more than 1 MiB come from segments of 20
 * MiB, or of their own size rounded to 2 MiB from 10 MiB on; the smallest free block that is large enough is taken, among equal ones
 * that of the lowest address, and split when more than 1 MiB would be left; neighbours that are free grow together; a block serves
 * only the stream it was made for; nothing goes back to the driver. Smaller requests fill segments of 2 MiB and are only summed up.
 */
export class CachingAllocator {
  /** Bytes taken from the driver so far. */
  reserved = 0;
  private small = 0;
  private smallReserved = 0;
  private nextAddress = 0;
  private readonly free: Block[][] = [];

  /** `bytes` as rounded by the allocator (512). Returns what `release` wants. */
  allocate(bytes: number, stream = 0): Block | number {
    if (bytes <= SMALL) {
      this.small += bytes;
      while (this.smallReserved < this.small) {
        this.smallReserved += SMALL_SEGMENT;
        this.reserved += SMALL_SEGMENT;
      }
      return bytes;
    }
    const list = this.listOf(stream);
    const index = firstFrom(list, bytes, 0);
    let block = list[index];
    if (block) list.splice(index, 1);
    else block = this.segment(bytes, stream);
    block.free = false;
    if (block.size - bytes > SMALL) {
      const address = block.address + bytes;
      const rest: Block = { size: block.size - bytes, address, stream, free: true, previous: block, next: block.next };
      if (rest.next) rest.next.previous = rest;
      block.next = rest;
      block.size = bytes;
      insert(list, rest);
    }
    return block;
  }

  /** A segment from the driver for `bytes`, whatever is free. */
  segment(bytes: number, stream = 0): Block {
    const size = bytes < LARGE_FROM ? LARGE_SEGMENT : Math.ceil(bytes / ROUND_LARGE) * ROUND_LARGE;
    const block = { size, address: this.nextAddress, stream, free: false, previous: undefined, next: undefined };
    this.reserved += size;
    this.nextAddress += size;
    return block;
  }

  release(block: Block | number): void {
    if (typeof block === 'number') {
      this.small -= block;
      return;
    }
    const list = this.listOf(block.stream);
    block.free = true;
    const { previous, next } = block;
    if (next?.free) {
      remove(list, next);
      block.size += next.size;
      block.next = next.next;
      if (block.next) block.next.previous = block;
    }
    if (previous?.free) {
      remove(list, previous);
      previous.size += block.size;
      previous.next = block.next;
      if (previous.next) previous.next.previous = previous;
      insert(list, previous);
    } else insert(list, block);
  }

  private listOf(stream: number): Block[] {
    let list = this.free[stream];
    if (!list) {
      list = [];
      this.free[stream] = list;
    }
    return list;
  }
}

/** Index of the first block that is not before (`bytes`, `address`). */
function firstFrom(list: readonly Block[], bytes: number, address: number): number {
  let low = 0;
  let high = list.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    const { size, address: at } = list[middle]!;
    if (size < bytes || (size === bytes && at < address)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert(list: Block[], block: Block): void {
  list.splice(firstFrom(list, block.size, block.address), 0, block);
}

function remove(list: Block[], block: Block): void {
  list.splice(firstFrom(list, block.size, block.address), 1);
}

export type Allocation = ReturnType<CachingAllocator['allocate']>;
