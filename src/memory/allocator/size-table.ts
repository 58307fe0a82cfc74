import { longer } from './free-ring.ts';

const BUCKETS = 256;

/** Different sizes, numbered as they come, and ranked once all are there. */
export class SizeTable {
  /** By number: rung in a BlockPool. */
  rungs = new Int32Array(64);
  private values = new Int32Array(64);
  private following = new Int32Array(64);
  private order = new Int32Array(64);
  private readonly firsts = new Int32Array(BUCKETS);
  private count = 0;

  clear(): void {
    this.firsts.fill(0);
    this.count = 0;
  }

  /** Number of a size, from 1. */
  add(size: number): number {
    const bucket = (size ^ (size >> 8) ^ (size >> 16)) & (BUCKETS - 1);
    const { values, following } = this;
    const first = this.firsts[bucket]!;
    for (let at = first; at !== 0; at = following[at]!) if (values[at] === size) return at;
    this.count += 1;
    const number = this.count;
    if (number === values.length) {
      this.values = longer(values);
      this.following = longer(following);
      this.rungs = longer(this.rungs);
      this.order = longer(this.order);
    }
    this.values[number] = size;
    this.following[number] = first;
    this.firsts[bucket] = number;
    return number;
  }

  /** All sizes in rising order; fills `rungs`. */
  rank(): readonly number[] {
    const { values, rungs, count, order } = this;
    for (let number = 1; number <= count; number += 1) {
      const size = values[number]!;
      let at = number - 1;
      while (at > 0 && values[order[at - 1]!]! > size) {
        order[at] = order[at - 1]!;
        at -= 1;
      }
      order[at] = number;
    }
    const sizes: number[] = [];
    for (let at = 0; at < count; at += 1) {
      rungs[order[at]!] = at + 2;
      sizes.push(values[order[at]!]!);
    }
    return sizes;
  }
}
