import { MiB } from '../../core/index.ts';
import { SMALL } from './caching-allocator.ts';

/** Sizes are counted in what the allocator hands out multiples of. */
const UNIT = 512;
const SMALL_UNITS = SMALL / UNIT;
const LARGE_FROM = (10 * MiB) / UNIT;
const LARGE_SEGMENT = (20 * MiB) / UNIT;
const ROUND_LARGE = (2 * MiB) / UNIT;
/** No block: they are numbered from 1. */
export const NONE = 0;

/**
 * PyTorch's pool of large blocks (see CachingAllocator) for many equal requests at once: a segment stands for as many equal ones as
 * there are layers, and copies of a request that lie side by side are one block. What is asked for together is given back together.
 */
export class GroupedAllocator {
  private reservedUnits = 0;
  private blocks = 1;
  private segments = 0;
  private size = new Int32Array(256);
  private previous = new Int32Array(256);
  private next = new Int32Array(256);
  private segment = new Int32Array(256);
  private isFree = new Uint8Array(256);
  /** In use: the next block of the same request. Free: the next one of the same size. */
  private link = new Int32Array(256);
  /** How many equal segments one stands for. */
  private copies = new Int32Array(256);
  /** Sizes of free blocks in rising order, and the first block of each. */
  private sizes = new Int32Array(64);
  private firsts = new Int32Array(64);
  private places = 0;

  /** Forgets everything but its room. */
  clear(): void {
    this.reservedUnits = 0;
    this.blocks = 1;
    this.segments = 0;
    this.places = 0;
  }

  /** Bytes taken from the driver so far. */
  get reserved(): number {
    return this.reservedUnits * UNIT;
  }

  /** `count` requests of `units` × 512 bytes, more than 1 MiB each. Returns what `release` wants. */
  allocate(units: number, count = 1): number {
    let head = NONE;
    let wanted = count;
    while (wanted > 0) {
      const place = this.placeOf(units);
      if (place === this.places) return this.newSegments(units, wanted, head);
      const block = this.firsts[place]!;
      const size = this.sizes[place]!;
      this.unlinkFirst(place, block);
      this.isFree[block] = 0;
      const own = this.segment[block]!;
      const perBlock = Math.min(wanted, Math.max(1, Math.floor(size / units)));
      const copies = this.copies[own]!;
      const used = Math.min(copies, Math.floor(wanted / perBlock));
      if (used < copies) this.split(block, copies - used);
      this.take(block, perBlock * units);
      this.link[block] = head;
      head = block;
      wanted -= used * perBlock;
    }
    return head;
  }

  /** A segment from the driver, whatever is free. */
  newSegments(units: number, count = 1, head = NONE): number {
    if (units >= LARGE_FROM) {
      const size = Math.ceil(units / ROUND_LARGE) * ROUND_LARGE;
      return this.use(this.newSegment(size, count), units, head);
    }
    const perSegment = Math.floor(LARGE_SEGMENT / units);
    const full = Math.floor(count / perSegment);
    const rest = count - full * perSegment;
    let last = head;
    if (full > 0) last = this.use(this.newSegment(LARGE_SEGMENT, full), perSegment * units, last);
    if (rest > 0) last = this.use(this.newSegment(LARGE_SEGMENT, 1), rest * units, last);
    return last;
  }

  release(head: number): void {
    for (let block = head; block !== NONE; ) {
      const following = this.link[block]!;
      this.free(block);
      block = following;
    }
  }

  private use(block: number, units: number, head: number): number {
    this.take(block, units);
    this.link[block] = head;
    return block;
  }

  /** What is left of a block beyond `units` is free, when it is more than 1 MiB. */
  private take(block: number, units: number): void {
    const rest = this.size[block]! - units;
    if (rest <= SMALL_UNITS) return;
    const after = this.next[block]!;
    const free = this.newBlock(rest, this.segment[block]!);
    this.size[block] = units;
    this.previous[free] = block;
    this.next[free] = after;
    if (after !== NONE) this.previous[after] = free;
    this.next[block] = free;
    this.insert(free);
  }

  private free(released: number): void {
    const { size, next, previous, isFree } = this;
    let block = released;
    const after = next[block]!;
    if (after !== NONE && isFree[after] === 1) {
      this.remove(after);
      size[block]! += size[after]!;
      this.join(block, after);
    }
    const before = previous[block]!;
    if (before !== NONE && isFree[before] === 1) {
      this.remove(before);
      size[before]! += size[block]!;
      this.join(before, block);
      block = before;
    }
    this.insert(block);
  }

  private join(first: number, second: number): void {
    const after = this.next[second]!;
    this.next[first] = after;
    if (after !== NONE) this.previous[after] = first;
  }

  /** Part of the equal segments that `block` is in go their own way: `copies` of them stay as they are, `block` free in them. */
  private split(block: number, copies: number): void {
    const old = this.segment[block]!;
    this.copies[old]! -= copies;
    const own = this.newCopies(copies);
    let from = block;
    while (this.previous[from] !== NONE) from = this.previous[from]!;
    let before = NONE;
    for (; from !== NONE; from = this.next[from]!) {
      const twin = this.newBlock(this.size[from]!, own);
      this.previous[twin] = before;
      if (before !== NONE) this.next[before] = twin;
      before = twin;
      if (from === block || this.isFree[from] === 1) this.insert(twin);
      else {
        this.link[twin] = this.link[from]!;
        this.link[from] = twin;
      }
    }
  }

  private newSegment(size: number, copies: number): number {
    this.reservedUnits += size * copies;
    return this.newBlock(size, this.newCopies(copies));
  }

  private newCopies(copies: number): number {
    if (this.segments === this.copies.length) this.copies = longer(this.copies);
    this.copies[this.segments] = copies;
    this.segments += 1;
    return this.segments - 1;
  }

  private newBlock(size: number, segment: number): number {
    const block = this.blocks;
    this.blocks += 1;
    if (block === this.size.length) this.grow();
    this.size[block] = size;
    this.segment[block] = segment;
    this.previous[block] = NONE;
    this.next[block] = NONE;
    this.link[block] = NONE;
    this.isFree[block] = 0;
    return block;
  }

  /** Place of the first size of at least `size`. */
  private placeOf(size: number): number {
    const { sizes, places } = this;
    let place = 0;
    while (place < places && sizes[place]! < size) place += 1;
    return place;
  }

  private insert(block: number): void {
    const size = this.size[block]!;
    const place = this.placeOf(size);
    this.isFree[block] = 1;
    if (place < this.places && this.sizes[place] === size) {
      this.link[block] = this.firsts[place]!;
      this.firsts[place] = block;
      return;
    }
    if (this.places === this.sizes.length) {
      this.sizes = longer(this.sizes);
      this.firsts = longer(this.firsts);
    }
    const { sizes, firsts } = this;
    for (let at = this.places; at > place; at -= 1) {
      sizes[at] = sizes[at - 1]!;
      firsts[at] = firsts[at - 1]!;
    }
    this.link[block] = NONE;
    sizes[place] = size;
    firsts[place] = block;
    this.places += 1;
  }

  private remove(block: number): void {
    const place = this.placeOf(this.size[block]!);
    const first = this.firsts[place]!;
    if (first === block) {
      this.unlinkFirst(place, block);
      return;
    }
    let at = first;
    while (this.link[at] !== block) at = this.link[at]!;
    this.link[at] = this.link[block]!;
  }

  private unlinkFirst(place: number, block: number): void {
    const following = this.link[block]!;
    if (following !== NONE) {
      this.firsts[place] = following;
      return;
    }
    const { sizes, firsts } = this;
    this.places -= 1;
    for (let at = place; at < this.places; at += 1) {
      sizes[at] = sizes[at + 1]!;
      firsts[at] = firsts[at + 1]!;
    }
  }

  private grow(): void {
    this.size = longer(this.size);
    this.previous = longer(this.previous);
    this.next = longer(this.next);
    this.segment = longer(this.segment);
    this.link = longer(this.link);
    const wider = new Uint8Array(this.isFree.length * 2);
    wider.set(this.isFree);
    this.isFree = wider;
  }
}

/** The same column with twice the room. */
export function longer(column: Int32Array): Int32Array<ArrayBuffer> {
  const grown = new Int32Array(column.length * 2);
  grown.set(column);
  return grown;
}
