import type { Allocation } from './caching-allocator.ts';
import { FIRST_ID, type ScriptEntry } from './script.ts';

const NONE = Number.NEGATIVE_INFINITY;

/** What is allocated while a script is played, by the ids of its logs: every instance has a row of places of its own. */
export class LiveBlocks {
  private readonly places: Float64Array;
  private readonly offsets: Int32Array;

  constructor(script: readonly ScriptEntry[]) {
    const ranges = new Map<ScriptEntry['log'], { readonly low: number; readonly high: number }>();
    const lows: number[] = [];
    const highs: number[] = [];
    for (const { instance, log } of script) {
      const range = ranges.get(log) ?? rangeOf(log);
      ranges.set(log, range);
      lows[instance] = Math.min(lows[instance] ?? range.low, range.low);
      highs[instance] = Math.max(highs[instance] ?? range.high, range.high);
    }
    this.offsets = new Int32Array(lows.length);
    let used = 0;
    for (let instance = 0; instance < lows.length; instance += 1) {
      const low = lows[instance];
      if (low === undefined || highs[instance]! < low) continue;
      this.offsets[instance] = used - low;
      used += highs[instance]! - low + 1;
    }
    this.places = new Float64Array(used).fill(NONE);
  }

  /** What is added to an instance's ids to get their places. */
  offset(instance: number): number {
    return this.offsets[instance]!;
  }

  set(place: number, allocation: Allocation): void {
    this.places[place] = allocation;
  }

  /** Takes an allocation out; undefined: there is none. */
  take(place: number): Allocation | undefined {
    const allocation = this.places[place]!;
    if (allocation === NONE) return undefined;
    this.places[place] = NONE;
    return allocation;
  }

  /** Takes out all there are. */
  takeAll(take: (allocation: Allocation) => void): void {
    const { places } = this;
    for (let place = 0; place < places.length; place += 1) {
      const allocation = places[place]!;
      if (allocation === NONE) continue;
      places[place] = NONE;
      take(allocation);
    }
  }
}

/** Lowest and highest id of a log's own allocations. */
function rangeOf(log: ScriptEntry['log']): { readonly low: number; readonly high: number } {
  let low = Number.POSITIVE_INFINITY;
  let high = 0;
  for (let i = 0; i < log.length; i += 2) {
    const id = Math.abs(log[i]!);
    if (id < FIRST_ID) continue;
    if (id < low) low = id;
    if (id > high) high = id;
  }
  return { low, high };
}
