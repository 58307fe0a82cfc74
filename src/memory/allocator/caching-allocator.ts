import { MiB } from '../../core/index.ts';

/** Requests up to this go to the small pool. */
export const SMALL = MiB;
const SMALL_SEGMENT = 2 * MiB;
const LARGE_FROM = 10 * MiB;
const LARGE_SEGMENT = 20 * MiB;
const ROUND_LARGE = 2 * MiB;

/** A stretch of a segment. Free ones stand in the free list, sorted by size. */
interface Block {
  size: number;
  free: boolean;
  previous: Block | undefined;
  next: Block | undefined;
}

/**
 * PyTorch's caching allocator for one stream (c10/cuda/CUDACachingAllocator.cpp, defaults): requests of more than 1 MiB come from
 * segments of 20 MiB, or of their own size rounded to 2 MiB from 10 MiB on; the smallest free block that is large enough is
 * taken and split when more than 1 MiB would be left; neighbours that are free grow together; nothing goes back to the driver.
 * Smaller requests fill segments of 2 MiB and are only summed up.
 */
export class CachingAllocator {
  /** Bytes taken from the driver so far. */
  reserved = 0;
  private small = 0;
  private smallReserved = 0;
  private readonly free: Block[] = [];

  /** `bytes` as rounded by the allocator (512). Returns what `release` wants. */
  allocate(bytes: number): Block | number {
    if (bytes <= SMALL) {
      this.small += bytes;
      while (this.smallReserved < this.small) {
        this.smallReserved += SMALL_SEGMENT;
        this.reserved += SMALL_SEGMENT;
      }
      return bytes;
    }
    const index = this.firstFrom(bytes);
    let block = this.free[index];
    if (block) this.free.splice(index, 1);
    else {
      const size = bytes < LARGE_FROM ? LARGE_SEGMENT : Math.ceil(bytes / ROUND_LARGE) * ROUND_LARGE;
      this.reserved += size;
      block = { size, free: true, previous: undefined, next: undefined };
    }
    block.free = false;
    if (block.size - bytes > SMALL) {
      const rest: Block = { size: block.size - bytes, free: true, previous: block, next: block.next };
      if (rest.next) rest.next.previous = rest;
      block.next = rest;
      block.size = bytes;
      this.insert(rest);
    }
    return block;
  }

  release(block: Block | number): void {
    if (typeof block === 'number') {
      this.small -= block;
      return;
    }
    block.free = true;
    const { previous, next } = block;
    if (next?.free) {
      this.remove(next);
      block.size += next.size;
      block.next = next.next;
      if (block.next) block.next.previous = block;
    }
    if (previous?.free) {
      this.remove(previous);
      previous.size += block.size;
      previous.next = block.next;
      if (previous.next) previous.next.previous = previous;
      this.insert(previous);
    } else this.insert(block);
  }

  /** Index of the first free block of at least `bytes`. */
  private firstFrom(bytes: number): number {
    let low = 0;
    let high = this.free.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.free[middle]!.size < bytes) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  private insert(block: Block): void {
    this.free.splice(this.firstFrom(block.size), 0, block);
  }

  private remove(block: Block): void {
    let index = this.firstFrom(block.size);
    while (this.free[index] !== block) index += 1;
    this.free.splice(index, 1);
  }
}

export type Allocation = ReturnType<CachingAllocator['allocate']>;
