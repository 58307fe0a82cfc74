import { MiB } from '../../core/index.ts';
import { FreeRing, longer, NONE } from './free-ring.ts';
import { UNIT } from './script.ts';

/** Requests up to this are none of this pool's; no rest up to this is cut off. */
export const SMALL_UNITS = MiB / UNIT;
const LARGE_FROM = (10 * MiB) / UNIT;
const LARGE_SEGMENT = (20 * MiB) / UNIT;
const ROUND_LARGE = (2 * MiB) / UNIT;
/** Most that one request is taken for, 512 GiB: sums of what lies side by side stay small integers. */
export const MOST_UNITS = 2 ** 30;

/** What a block is: asked for, free, there for good, or given back but not yet free (see `forget`). */
const USED = 0;
const FREE = 1;
const HELD = 2;
const FORGOTTEN = 3;

/**
 * PyTorch's pool of large blocks (see CachingAllocator: best fit; rests of more than 1 MiB are cut off; free neighbours of a segment
 * are one) for many equal requests at once: a segment stands for as many equal ones as there are layers, and copies of a request
 * that lie side by side are one block. What is asked for together is given back together. Sizes in units.
 *
 * Some hundred requests are played for one estimate, and no two estimates are alike: what costs time are turns that a processor
 * cannot foresee, so that columns have a place for no block, which may be written to.
 */
export class BlockPool extends FreeRing {
  private reservedUnits = 0;
  private blocks = 2;
  private spare = NONE;
  private previous = new Int32Array(512);
  private next = new Int32Array(512);
  private segment = new Int32Array(512);
  private state = new Uint8Array(512);
  /** Of a block in use: the next one of the same request is `after` it; a rung that is not above its size. */
  private rung = new Int32Array(512);
  /** First block of each segment, and how many equal ones it stands for. */
  private firsts = new Int32Array(128);
  private copies = new Int32Array(128);
  private segments = 0;
  private forgot = false;

  /** Forgets everything. `sizes`: what will be asked for most, in rising order; see FreeRing. */
  clear(sizes: readonly number[] = []): void {
    this.reservedUnits = 0;
    this.spare = NONE;
    this.segments = 0;
    this.forgot = false;
    this.setRungs(sizes);
    this.blocks = this.end + 1;
  }

  /** Bytes taken from the driver so far. */
  get reserved(): number {
    return this.reservedUnits * UNIT;
  }

  /** A block of `units`, more than 1 MiB; `rung` is theirs. */
  allocate(units: number, rung: number): number {
    let block = this.find(units, rung);
    if (block === this.end) block = this.newSegments(units, 1);
    else {
      const copies = this.copies[this.segment[block]!]!;
      if (copies > 1) this.split(block, copies - 1);
    }
    this.take(block, units, rung, USED);
    this.after[block] = NONE;
    return block;
  }

  /** `count` blocks as one. */
  allocateMany(units: number, count: number): number {
    return this.takeMany(units, count, USED);
  }

  /** `count` blocks that stay for good. */
  hold(units: number, count: number): void {
    this.takeMany(units, count, HELD);
  }

  release(head: number): void {
    for (let block = head; block !== NONE; ) {
      const following = this.after[block]!;
      this.free(block);
      block = following;
    }
  }

  /** A block is given back and one of as many units asked for at once: the same one, unless a better one is free. */
  reuse(block: number, units: number, rung: number): number {
    const { size, state } = this;
    if (state[this.next[block]!] !== FREE && state[this.previous[block]!] !== FREE) {
      // What stands behind its rung is the smallest that would do, or the next rung.
      if (size[this.after[rung]!]! >= size[block]!) return block;
    }
    this.release(block);
    return this.allocate(units, rung);
  }

  /** A block is asked for and given back at once: nothing changes, unless it takes a new segment. */
  ensure(units: number, rung: number): void {
    if (this.find(units, rung) === this.end) this.newSegments(units, 1);
  }

  /** A segment from the driver whatever is free, given back at once. */
  leaveSegment(units: number): void {
    this.newSegments(units, 1);
  }

  /** What was asked for until now stays for good. */
  settle(): void {
    for (let i = 0; i < this.segments; i += 1) {
      for (let block = this.firsts[i]!; block !== NONE; block = this.next[block]!) {
        if (this.state[block] === USED) this.state[block] = HELD;
      }
    }
  }

  /** A block stays for good. */
  keep(block: number): void {
    this.state[block] = HELD;
  }

  /** What was asked for together is given back, but serves nothing before `freeForgotten`. */
  forget(head: number): void {
    for (let block = head; block !== NONE; block = this.after[block]!) this.state[block] = FORGOTTEN;
    this.forgot = true;
  }

  /** What was forgotten is free: as if it had come back one by one, in whatever order. */
  freeForgotten(): void {
    if (this.forgot) this.rebuild(USED);
  }

  /** Everything is free but what stays for good. */
  sweep(): void {
    this.rebuild(HELD);
  }

  /** Free is whatever does not stay for good and is not `kept`. */
  private rebuild(kept: number): void {
    const { size, next, state } = this;
    this.empty();
    this.forgot = false;
    for (let i = 0; i < this.segments; i += 1) {
      for (let block = this.firsts[i]!; block !== NONE; block = next[block]!) {
        if (state[block] === HELD || state[block] === kept) continue;
        for (
          let after = next[block]!;
          after !== NONE && state[after] !== HELD && state[after] !== kept;
          after = next[block]!
        ) {
          size[block]! += size[after]!;
          this.join(block, after);
        }
        this.insertFree(block, this.rungOf(size[block]!));
      }
    }
  }

  private free(released: number): void {
    const { size, next, previous, state } = this;
    let block = released;
    const rung = this.rung[block]!;
    const following = next[block]!;
    if (state[following] === FREE) {
      this.unlink(following);
      size[block]! += size[following]!;
      this.join(block, following);
    }
    const preceding = previous[block]!;
    if (state[preceding] === FREE) {
      this.unlink(preceding);
      size[preceding]! += size[block]!;
      this.join(preceding, block);
      block = preceding;
    }
    this.insertFree(block, rung);
  }

  /** A free block is in use: what is left of it beyond `units` is free, when it is more than 1 MiB. */
  private take(block: number, units: number, rung: number, state: number): void {
    const rest = this.size[block]! - units;
    this.unlink(block);
    this.state[block] = state;
    this.rung[block] = rung;
    if (rest <= SMALL_UNITS) return;
    const free = this.newBlock(rest, this.segment[block]!);
    const { size, next, previous } = this;
    const following = next[block]!;
    size[block] = units;
    previous[free] = block;
    next[free] = following;
    previous[following] = free;
    next[block] = free;
    let lower = rung;
    while (size[lower]! >= rest) lower -= 1;
    this.insertFree(free, lower);
  }

  private takeMany(units: number, count: number, state: number): number {
    const rung = this.rungOf(units);
    let head = NONE;
    for (let wanted = count; wanted > 0; ) {
      let block = this.find(units, rung);
      let segments: number;
      let perBlock: number;
      if (block === this.end) {
        const size = segmentOf(units);
        perBlock = Math.min(wanted, (size / units) | 0);
        segments = (wanted / perBlock) | 0;
        // Nothing will ever be free in it.
        if (state === HELD && size - perBlock * units <= SMALL_UNITS) this.reservedUnits += size * segments;
        else block = this.newSegments(units, segments);
      } else {
        perBlock = Math.min(wanted, (this.size[block]! / units) | 0);
        const copies = this.copies[this.segment[block]!]!;
        segments = Math.min(copies, (wanted / perBlock) | 0);
        if (segments < copies) this.split(block, copies - segments);
      }
      wanted -= segments * perBlock;
      if (block === this.end) continue;
      this.take(block, perBlock * units, perBlock === 1 ? rung : this.rungOf(perBlock * units), state);
      this.after[block] = head;
      head = block;
    }
    return head;
  }

  /** Part of the equal segments that a free block is in go their own way: `copies` of them. */
  private split(block: number, copies: number): void {
    const old = this.segment[block]!;
    this.copies[old]! -= copies;
    const own = this.newCopies(copies);
    let before = NONE;
    for (let from = this.firsts[old]!; from !== NONE; from = this.next[from]!) {
      const twin = this.newBlock(this.size[from]!, own);
      this.previous[twin] = before;
      this.next[twin] = NONE;
      if (before === NONE) this.firsts[own] = twin;
      else this.next[before] = twin;
      before = twin;
      this.rung[twin] = this.rung[from]!;
      if (this.state[from] === FREE) this.insertFree(twin, this.rungOf(this.size[from]!));
      else {
        this.state[twin] = this.state[from]!;
        this.after[twin] = this.after[from]!;
        this.after[from] = twin;
      }
    }
  }

  private join(first: number, second: number): void {
    const after = this.next[second]!;
    this.next[first] = after;
    this.previous[after] = first;
    this.after[second] = this.spare;
    this.spare = second;
  }

  /** Equal segments from the driver, as one free block. */
  private newSegments(units: number, copies: number): number {
    const size = segmentOf(units);
    const segment = this.newCopies(copies);
    const block = this.newBlock(size, segment);
    this.reservedUnits += size * copies;
    this.previous[block] = NONE;
    this.next[block] = NONE;
    this.firsts[segment] = block;
    this.insertFree(block, this.rungOf(size));
    return block;
  }

  private newCopies(copies: number): number {
    if (this.segments === this.copies.length) {
      this.copies = longer(this.copies);
      this.firsts = longer(this.firsts);
    }
    this.copies[this.segments] = copies;
    this.segments += 1;
    return this.segments - 1;
  }

  private newBlock(size: number, segment: number): number {
    let block = this.spare;
    if (block !== NONE) this.spare = this.after[block]!;
    else {
      block = this.blocks;
      this.blocks += 1;
      if (block === this.size.length) this.grow();
    }
    this.size[block] = size;
    this.segment[block] = segment;
    return block;
  }

  private insertFree(block: number, lower: number): void {
    this.state[block] = FREE;
    this.insert(block, lower);
  }

  protected override grow(): void {
    super.grow();
    this.previous = longer(this.previous);
    this.next = longer(this.next);
    this.segment = longer(this.segment);
    this.rung = longer(this.rung);
    const states = new Uint8Array(this.size.length);
    states.set(this.state);
    this.state = states;
  }
}

/** Segment for a request that nothing free serves. */
const segmentOf = (units: number): number =>
  units < LARGE_FROM ? LARGE_SEGMENT : (units + ROUND_LARGE - 1) & -ROUND_LARGE;
