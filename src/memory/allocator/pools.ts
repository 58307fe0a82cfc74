import { MiB } from '../../core/index.ts';
import { BlockPool, MOST_UNITS, SMALL_UNITS } from './block-pool.ts';
import { UNIT } from './script.ts';

const SMALL_SEGMENT = (2 * MiB) / UNIT;

/** Pools of large blocks and of small ones of one stream; small ones are only summed. */
export class Pools {
  readonly large = new BlockPool();
  /** Small requests that are there now, units of 512 bytes. */
  small = 0;
  private smallHighest = 0;

  /** Forgets everything; see BlockPool. */
  clear(sizes: readonly number[]): void {
    this.large.clear(sizes);
    this.small = 0;
    this.smallHighest = 0;
  }

  /** Bytes taken from the driver so far. */
  get reserved(): number {
    return this.large.reserved + Math.ceil(this.smallHighest / SMALL_SEGMENT) * SMALL_SEGMENT * UNIT;
  }

  /** A request. Returns what `release` wants: of a small one its units, negative. */
  allocate(bytes: number): number {
    const units = unitsOf(bytes);
    const { large } = this;
    if (units > SMALL_UNITS) return large.allocate(units, large.rungOf(units));
    this.addSmall(units, units);
    return -units;
  }

  release(allocation: number): void {
    if (allocation > 0) this.large.release(allocation);
    else this.small += allocation;
  }

  /** `count` equal requests that stay. */
  hold(bytes: number, count: number): void {
    const units = unitsOf(bytes);
    if (units > SMALL_UNITS) this.large.hold(units, count);
    else this.addSmall(units * count, units * count);
  }

  /** `count` equal requests that end with the step. */
  lend(bytes: number, count: number): void {
    const units = unitsOf(bytes);
    if (units > SMALL_UNITS) this.large.allocateMany(units, count);
    else this.addSmall(units * count, units * count);
  }

  /** What small requests come to at most, and what is left of them, units. */
  addSmall(highest: number, end: number): void {
    if (this.small + highest > this.smallHighest) this.smallHighest = this.small + highest;
    this.small += end;
  }
}

const unitsOf = (bytes: number): number => Math.min(Math.ceil(bytes / UNIT), MOST_UNITS);
