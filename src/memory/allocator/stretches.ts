import { MOST_UNITS, SMALL_UNITS } from './block-pool.ts';
import { longer } from './free-ring.ts';
import { type AllocationLog, FIRST_ID, GRADIENT_ID, INPUT_ID, PRODUCT_ID } from './script.ts';
import { SizeTable } from './size-table.ts';

/** What an event does, in its lowest bits; a slot stands above them. */
export const ALLOCATE = 0;
export const RELEASE = 1;
/** A block is given back, and one of its size asked for. */
export const REUSE = 2;
/** A block is asked for and given back. */
export const ENSURE = 3;
export const RELEASE_INPUT = 4;
export const RELEASE_GRADIENT = 5;
export const PRODUCT = 6;
export const OPERATION = 7;
export const SLOT_SHIFT = 3;

/** One stretch of a step as the pool of large blocks sees it; small requests are summed up. */
export interface Stretch {
  /** Where its events begin and end. */
  readonly from: number;
  readonly to: number;
  /** Highest sum of small requests over the start, and what is left of them, units. */
  readonly smallPeak: number;
  readonly smallEnd: number;
  /** Lasting slots that it leaves filled: its own ones, and those filled by others that hold something made here. */
  readonly kept: readonly number[];
  readonly renewed: readonly number[];
  /** Lasting slots filled by others that it leaves empty. */
  readonly freed: readonly number[];
  readonly freesInput: boolean;
}

/**
 * Shortens the logs of one step. Each of its rules leaves the pool as playing the log would: giving back can wait while nothing is
 * asked for, so that a block that is given back before an equal request is one event with it, and so is one given back before the
 * next request. Slots are numbers: positive ones for what ends with its stretch, negative ones for what lasts longer.
 */
export class Stretches {
  codes = new Int32Array(1024);
  /** Of every event that asks for a block: its units, and their rung once all are known. */
  units = new Int32Array(1024);
  rungs = new Int32Array(1024);
  readonly sizes = new SizeTable();
  /** Numbers of slots in use so far, 0 is none. */
  passing = 1;
  lasting = 1;
  /** Units of what a lasting slot holds. */
  lastingUnits = new Int32Array(256);
  private events = 0;
  private ids = 0;
  /** By id: place + 1 of one of this stretch, negative: of a lasting one. */
  private slots = new Int32Array(1024);
  /** Of this stretch's places: units (their slots at last), whether something is there, and its id. */
  private placeUnits = new Int32Array(512);
  private filled = new Uint8Array(512);
  private placeIds = new Int32Array(512);
  private places = 0;

  clear(): void {
    this.events = 0;
    this.passing = 1;
    this.lasting = 1;
    this.slots.fill(0, 0, this.ids);
    this.ids = 0;
    this.sizes.clear();
  }

  /** Lasting slot of an id; 0: what it stands for is small, or nothing. */
  lastingSlotOf(id: number): number {
    return id < this.ids ? Math.max(0, -this.slots[id]!) : 0;
  }

  add(log: AllocationLog): Stretch {
    this.reserve(log.length / 2);
    const { codes, units: allUnits, filled, placeUnits, placeIds } = this;
    let { slots } = this;
    const from = this.events;
    let to = from;
    let small = 0;
    let smallPeak = 0;
    let freesInput = false;
    let places = 0;
    let ids = this.ids;
    const freed: number[] = [];
    const renewed: number[] = [];
    for (let i = 0; i < log.length; i += 2) {
      const id = log[i]!;
      const units = Math.min(log[i + 1]!, MOST_UNITS);
      if (units <= SMALL_UNITS && id !== PRODUCT_ID) {
        small += id > 0 ? units : -units;
        if (small > smallPeak) smallPeak = small;
        continue;
      }
      if (id > 0) {
        if (id >= ids) {
          ids = id + 1;
          while (id >= slots.length) slots = this.slots = longer(slots);
        }
        const freedAt = lastRelease(codes, allUnits, from, to, units);
        if (freedAt >= 0) {
          const slot = codes[freedAt]! >> SLOT_SHIFT;
          to -= 1;
          for (let at = freedAt; at < to; at += 1) {
            codes[at] = codes[at + 1]!;
            allUnits[at] = allUnits[at + 1]!;
          }
          if (slot < 0) {
            remove(freed, -slot);
            renewed.push(-slot);
          } else {
            filled[slot - 1] = 1;
            placeIds[slot - 1] = id;
          }
          slots[id] = slot;
          codes[to] = (slot << SLOT_SHIFT) | REUSE;
        } else {
          filled[places] = 1;
          placeUnits[places] = units;
          placeIds[places] = id;
          places += 1;
          slots[id] = places;
          codes[to] = (places << SLOT_SHIFT) | ALLOCATE;
        }
      } else if (id <= -FIRST_ID) {
        const slot = slots[-id]!;
        if (slot === 0) continue;
        if (slot < 0) {
          remove(renewed, -slot);
          freed.push(-slot);
        } else filled[slot - 1] = 0;
        const askedAt = lastRequest(codes, from, to, slot);
        if (askedAt >= 0) {
          codes[askedAt]! += (codes[askedAt]! & OPERATION) === ALLOCATE ? ENSURE - ALLOCATE : RELEASE - REUSE;
          continue;
        }
        codes[to] = (slot << SLOT_SHIFT) | RELEASE;
      } else if (id === -INPUT_ID) {
        freesInput = true;
        codes[to] = RELEASE_INPUT;
      } else codes[to] = id === -GRADIENT_ID ? RELEASE_GRADIENT : PRODUCT;
      allUnits[to] = units;
      to += 1;
    }
    this.ids = ids;
    this.places = places;
    this.events = to;
    const kept = this.settle(from, to);
    return { from, to, smallPeak, smallEnd: small, kept, renewed, freed, freesInput };
  }

  /** Gives every event the rung of its units, and returns all sizes in rising order. */
  rank(): readonly number[] {
    const { rungs, events, sizes } = this;
    const list = sizes.rank();
    for (let at = 0; at < events; at += 1) rungs[at] = sizes.rungs[rungs[at]!]!;
    return list;
  }

  /** Places become slots; returns the lasting ones. */
  private settle(from: number, to: number): number[] {
    const { codes, units, rungs, slots, filled, placeUnits, placeIds, places, sizes } = this;
    const kept: number[] = [];
    let passing = 1;
    for (let place = 0; place < places; place += 1) {
      if (filled[place] === 0) {
        placeUnits[place] = passing;
        passing += 1;
        continue;
      }
      if (this.lasting === this.lastingUnits.length) this.lastingUnits = longer(this.lastingUnits);
      this.lastingUnits[this.lasting] = placeUnits[place]!;
      placeUnits[place] = -this.lasting;
      slots[placeIds[place]!] = -this.lasting;
      kept.push(this.lasting);
      this.lasting += 1;
    }
    if (passing > this.passing) this.passing = passing;
    for (let at = from; at < to; at += 1) {
      const code = codes[at]!;
      const operation = code & OPERATION;
      if (operation >= RELEASE_INPUT) continue;
      const place = code >> SLOT_SHIFT;
      if (place > 0) codes[at] = (placeUnits[place - 1]! << SLOT_SHIFT) | operation;
      if (operation !== RELEASE) rungs[at] = sizes.add(units[at]!);
    }
    return kept;
  }

  /** Room for the events of a log. */
  private reserve(length: number): void {
    while (this.events + length > this.codes.length) {
      this.codes = longer(this.codes);
      this.units = longer(this.units);
      this.rungs = longer(this.rungs);
    }
    while (length > this.placeUnits.length) {
      this.placeUnits = longer(this.placeUnits);
      this.placeIds = longer(this.placeIds);
      this.filled = new Uint8Array(this.placeUnits.length);
    }
  }
}

/** Where a block of `wanted` units was given back that nothing was asked for since; −1: nowhere. */
function lastRelease(codes: Int32Array, units: Int32Array, from: number, to: number, wanted: number): number {
  for (let at = to - 1; at >= from; at -= 1) {
    const operation = codes[at]! & OPERATION;
    if (operation === RELEASE) {
      if (units[at] === wanted) return at;
    } else if (operation !== RELEASE_INPUT && operation !== RELEASE_GRADIENT) return -1;
  }
  return -1;
}

/** Where the block in `slot` was asked for, when nothing else was since; −1: something was. */
function lastRequest(codes: Int32Array, from: number, to: number, slot: number): number {
  for (let at = to - 1; at >= from; at -= 1) {
    const code = codes[at]!;
    const operation = code & OPERATION;
    if (operation === ALLOCATE || operation === REUSE) return code >> SLOT_SHIFT === slot ? at : -1;
    if (operation === ENSURE || operation === PRODUCT) return -1;
  }
  return -1;
}

function remove(list: number[], slot: number): void {
  const at = list.indexOf(slot);
  if (at >= 0) list.splice(at, 1);
}
