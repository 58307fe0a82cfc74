import { SMALL } from './caching-allocator.ts';
import { longer } from './grouped-allocator.ts';
import { type AllocationLog, FIRST_ID, INPUT_ID, PRODUCT_ID, UNIT } from './script.ts';

const SMALL_UNITS = SMALL / UNIT;

/** One stretch of a step with what the pool of large blocks sees of it; the rest is summed up. Blocks stand in numbered slots. */
export interface Stretch {
  /** Where its events begin and end; see Condenser. */
  readonly from: number;
  readonly to: number;
  /** Highest sum of small requests over the start, and what is left of them, units of 512 bytes. */
  readonly smallPeak: number;
  readonly smallEnd: number;
  /** Slots filled here that are still so afterwards. */
  readonly kept: readonly number[];
  /** Slots filled elsewhere that hold something made here. */
  readonly renewed: readonly number[];
  /** Slots filled elsewhere that are empty afterwards. */
  readonly freed: readonly number[];
  readonly freesInput: boolean;
}

/** Shortens the logs of one step, of one after the other: room is kept from one to the next. */
export class Condenser {
  /** Allocations (`slot`) and frees (`−slot`) of all stretches; slots 1 and 2 are the caller's buffers, 0 a product. */
  codes = new Int32Array(1024);
  /** Units of 512 bytes of every event. */
  units = new Int32Array(1024);
  /** Units of what is in a slot. */
  sizes = new Int32Array(512);
  /** Slots so far, those of the caller's buffers included. */
  size = FIRST_ID;
  private events = 0;
  private ids = 0;
  private slots = new Int32Array(1024);
  private filled = new Uint8Array(512);

  /** Forgets what it has. */
  clear(): void {
    this.size = FIRST_ID;
    this.events = 0;
    this.slots.fill(0, 0, this.ids);
    this.ids = 0;
  }

  /** Slot of an id; 0: what it stands for is small, or nothing. */
  slotOf(id: number): number {
    return id < this.ids ? this.slots[id]! : 0;
  }

  /** A block that is freed and asked for again at once is the same one; requests of up to 1 MiB only count. */
  condense(log: AllocationLog): Stretch {
    this.reserve(log.length / 2);
    const { codes, units: allUnits, sizes, filled } = this;
    const first = this.size;
    const from = this.events;
    let to = from;
    let small = 0;
    let smallPeak = 0;
    let freesInput = false;
    const renewed: number[] = [];
    const freed: number[] = [];
    for (let i = 0; i < log.length; i += 2) {
      const id = log[i]!;
      const units = log[i + 1]!;
      if (id !== PRODUCT_ID && units <= SMALL_UNITS) {
        small += id > 0 ? units : -units;
        if (small > smallPeak) smallPeak = small;
        continue;
      }
      let code = id;
      if (id > 0) {
        const freedAt = lastFree(codes, allUnits, from, to, units);
        if (freedAt >= 0) {
          const slot = -codes[freedAt]!;
          to -= 1;
          for (let at = freedAt; at < to; at += 1) {
            codes[at] = codes[at + 1]!;
            allUnits[at] = allUnits[at + 1]!;
          }
          if (slot < first) {
            removeFrom(freed, slot);
            renewed.push(slot);
          }
          filled[slot] = 1;
          this.place(id, slot);
          continue;
        }
        code = this.size;
        this.size += 1;
        sizes[code] = units;
        filled[code] = 1;
        this.place(id, code);
      } else if (id <= -FIRST_ID) {
        const slot = this.slots[-id]!;
        filled[slot] = 0;
        if (slot < first) {
          removeFrom(renewed, slot);
          freed.push(slot);
        }
        code = -slot;
      } else if (id === -INPUT_ID) freesInput = true;
      codes[to] = code;
      allUnits[to] = units;
      to += 1;
    }
    this.events = to;
    const kept: number[] = [];
    for (let slot = first; slot < this.size; slot += 1) if (filled[slot] === 1) kept.push(slot);
    return { from, to, smallPeak, smallEnd: small, kept, renewed, freed, freesInput };
  }

  private place(id: number, slot: number): void {
    while (id >= this.slots.length) this.slots = longer(this.slots);
    this.slots[id] = slot;
    if (id >= this.ids) this.ids = id + 1;
  }

  /** Room for so many more events. */
  private reserve(more: number): void {
    while (this.events + more > this.codes.length) {
      this.codes = longer(this.codes);
      this.units = longer(this.units);
    }
    while (this.size + more > this.sizes.length) {
      this.sizes = longer(this.sizes);
      const filled = new Uint8Array(this.sizes.length);
      filled.set(this.filled);
      this.filled = filled;
    }
  }
}

/** Where a block of `wanted` units was freed that nothing was asked for since; −1: nowhere. */
function lastFree(codes: Int32Array, units: Int32Array, from: number, to: number, wanted: number): number {
  for (let at = to - 1; at >= from && codes[at]! < 0; at -= 1) {
    if (units[at] === wanted && codes[at]! <= -FIRST_ID) return at;
  }
  return -1;
}

function removeFrom(list: number[], slot: number): void {
  const at = list.indexOf(slot);
  if (at >= 0) list.splice(at, 1);
}
