import { MiB } from '../../core/index.ts';
import { SMALL } from './caching-allocator.ts';
import { GroupedAllocator } from './grouped-allocator.ts';

/** Sizes are counted in what the allocator hands out multiples of. */
export const UNIT = 512;
export const SMALL_UNITS = SMALL / UNIT;
const SMALL_SEGMENT = (2 * MiB) / UNIT;

/** Pools of large blocks and of small ones of one stream; small ones are only summed. */
export class Pools {
  readonly large = new GroupedAllocator();
  /** Small requests that are there now, units of 512 bytes. */
  small = 0;
  private smallHighest = 0;

  /** Forgets everything. */
  clear(): void {
    this.large.clear();
    this.small = 0;
    this.smallHighest = 0;
  }

  /** Bytes taken from the driver so far. */
  get reserved(): number {
    return this.large.reserved + Math.ceil(this.smallHighest / SMALL_SEGMENT) * SMALL_SEGMENT * UNIT;
  }

  /** `count` requests. Returns what `release` wants: of small ones their units, negative. */
  allocate(bytes: number, count = 1): number {
    const units = Math.ceil(bytes / UNIT);
    if (units > SMALL_UNITS) return this.large.allocate(units, count);
    this.addSmall(units * count, units * count);
    return -units * count;
  }

  /** What small requests come to at most, and what is left of them, units. */
  addSmall(highest: number, end: number): void {
    if (this.small + highest > this.smallHighest) this.smallHighest = this.small + highest;
    this.small += end;
  }

  release(allocation: number): void {
    if (allocation > 0) this.large.release(allocation);
    else this.small += allocation;
  }
}
