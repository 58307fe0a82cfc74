/** Free blocks of one size, the one of the lowest address last. */
class Bin {
  count = 0;
  blocks = new Int32Array(16);
}

/**
 * Free blocks of one stream by size, among equal ones by address: the order of PyTorch's `BlockPool`
 * (c10/cuda/CUDACachingAllocator.cpp, `BlockComparatorSize`). There are many blocks but few sizes, as layers repeat: each size is
 * a bin of its own. Sizes in units; blocks are numbers.
 */
export class FreeBlocks {
  /** How many sizes there are, and they in rising order with their bins. */
  private count = 0;
  private readonly sizes: number[] = [];
  private readonly bins: Bin[] = [];
  private readonly spare: Bin[] = [];

  /** `addresses`: of every block, by its number. */
  constructor(private addresses: Float64Array) {}

  /** The column of addresses was made longer. */
  setAddresses(addresses: Float64Array): void {
    this.addresses = addresses;
  }

  /** Takes out the block that serves a request of `size`; 0: there is none. */
  takeFrom(size: number): number {
    const place = this.placeOf(size);
    if (place === this.count) return 0;
    const bin = this.bins[place]!;
    bin.count -= 1;
    const block = bin.blocks[bin.count]!;
    if (bin.count === 0) this.removeBin(place);
    return block;
  }

  insert(block: number, size: number): void {
    const place = this.placeOf(size);
    if (place === this.count || this.sizes[place] !== size) this.addBin(place, size);
    const bin = this.bins[place]!;
    if (bin.count === bin.blocks.length) {
      const longer = new Int32Array(bin.count * 2);
      longer.set(bin.blocks);
      bin.blocks = longer;
    }
    const { blocks } = bin;
    const { addresses } = this;
    const address = addresses[block]!;
    let at = bin.count;
    while (at > 0 && addresses[blocks[at - 1]!]! < address) {
      blocks[at] = blocks[at - 1]!;
      at -= 1;
    }
    blocks[at] = block;
    bin.count += 1;
  }

  remove(block: number, size: number): void {
    const place = this.placeOf(size);
    const bin = this.bins[place]!;
    const { blocks } = bin;
    bin.count -= 1;
    if (bin.count === 0) {
      this.removeBin(place);
      return;
    }
    // What stands behind moves up until the block is met.
    let moved = blocks[bin.count]!;
    for (let at = bin.count - 1; moved !== block; at -= 1) {
      const own = blocks[at]!;
      blocks[at] = moved;
      moved = own;
    }
  }

  /** Place of the first bin of at least `size`. */
  private placeOf(size: number): number {
    const { sizes, count } = this;
    let place = 0;
    while (place < count && sizes[place]! < size) place += 1;
    return place;
  }

  private addBin(place: number, size: number): void {
    const { sizes, bins } = this;
    for (let at = this.count; at > place; at -= 1) {
      sizes[at] = sizes[at - 1]!;
      bins[at] = bins[at - 1]!;
    }
    sizes[place] = size;
    bins[place] = this.spare.pop() ?? new Bin();
    this.count += 1;
  }

  private removeBin(place: number): void {
    const { sizes, bins } = this;
    this.spare.push(bins[place]!);
    this.count -= 1;
    for (let at = place; at < this.count; at += 1) {
      sizes[at] = sizes[at + 1]!;
      bins[at] = bins[at + 1]!;
    }
  }
}
