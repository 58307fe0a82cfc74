/** No block: they are numbered from 1. */
export const NONE = 0;
/** Above every size. */
const HIGHEST = 2 ** 31 - 1;

/**
 * Free blocks of a pool in rising order of size, among equal ones the first to come first, linked as a ring. Before the blocks of each
 * size that is asked for stands its rung, so that a request finds its block just behind it. Rungs are numbered like blocks, below all
 * of them: the ring needs no case of its own for its ends. Column 0 belongs to no block and may be written to.
 */
export class FreeRing {
  protected size = new Int32Array(512);
  /** Free: its neighbours in the ring. Of others a pool may use `after` for lists of its own. */
  protected before = new Int32Array(512);
  protected after = new Int32Array(512);
  /** The last rung, which ends the ring; blocks have higher numbers. */
  protected end = 1;

  /** `sizes`: what will be asked for most, in rising order; the first gets rung 2, and rung 1 is below all sizes. */
  protected setRungs(sizes: readonly number[]): void {
    this.end = sizes.length + 2;
    while (this.end >= this.size.length) this.grow();
    this.size[1] = 0;
    // A block of just that size stands behind its rung.
    for (let i = 0; i < sizes.length; i += 1) this.size[i + 2] = sizes[i]! - 1;
    this.size[this.end] = HIGHEST;
    this.empty();
  }

  /** Rungs alone. */
  protected empty(): void {
    const { before, after, end } = this;
    for (let rung = 1; rung <= end; rung += 1) {
      before[rung] = rung - 1;
      after[rung] = rung + 1;
    }
    after[end] = 1;
    before[1] = end;
  }

  /** The last rung that is not above a size. */
  rungOf(units: number): number {
    const { size } = this;
    let rung = this.end - 1;
    while (size[rung]! >= units) rung -= 1;
    return rung;
  }

  /** The smallest free block of at least `units`, whose rung is given; or the end of the ring. */
  protected find(units: number, rung: number): number {
    const { after, size, end } = this;
    let block = after[rung]!;
    while (block < end || size[block]! < units) block = after[block]!;
    return block;
  }

  /** Puts a block at its place, which is behind rung `lower`. */
  protected insert(block: number, lower: number): void {
    const { size, before, after } = this;
    const own = size[block]!;
    let rung = lower;
    while (size[rung + 1]! < own) rung += 1;
    let behind = before[rung + 1]!;
    while (size[behind]! > own) behind = before[behind]!;
    const ahead = after[behind]!;
    before[block] = behind;
    after[block] = ahead;
    before[ahead] = block;
    after[behind] = block;
  }

  protected unlink(block: number): void {
    const { before, after } = this;
    const behind = before[block]!;
    const ahead = after[block]!;
    after[behind] = ahead;
    before[ahead] = behind;
  }

  /** Twice the room for blocks. */
  protected grow(): void {
    this.size = longer(this.size);
    this.before = longer(this.before);
    this.after = longer(this.after);
  }
}

/** The same column with twice the room. */
export function longer(column: Int32Array): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(column.length * 2);
  grown.set(column);
  return grown;
}
