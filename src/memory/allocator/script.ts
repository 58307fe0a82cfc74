/** The caller's buffer that a segment reads from its neighbour: a layer's input, or its output's gradient. */
export const INPUT_ID = 1;
export const GRADIENT_ID = 2;
/** Stands where a stretch's first matrix product runs. */
export const PRODUCT_ID = 0;
/** Ids from here on belong to single allocations. */
export const FIRST_ID = 3;

/** Bytes of a unit: sizes in logs count them, as small integers. */
export const UNIT = 512;

/** Allocations (`id, units`) and frees (`-id, units`) of one stretch of a step in order. */
export type AllocationLog = readonly number[];

/** One stretch of a step, or equal ones in a row. A layer's two halves share an instance, so that what one keeps the other frees. */
export interface ScriptEntry {
  /** Of the first layer, the following ones count up: 0 is everything that is no layer. */
  readonly instance: number;
  /** Layers in a row; going backward the last of them comes first. */
  readonly times: number;
  readonly log: AllocationLog;
  /** The id under which it hands its result to the next stretch, 0: none. */
  readonly resultId: number;
  readonly kind: 'forward' | 'backward';
}

/** Collects the stretches of one step as they run. */
export class Recorder {
  readonly entries: ScriptEntry[] = [];
  private instances = 0;

  /** The first of `times` new ones. */
  newInstances(times: number): number {
    this.instances += times;
    return this.instances - times + 1;
  }

  add(
    segment: { readonly log: AllocationLog | null },
    kind: ScriptEntry['kind'],
    instance = 0,
    resultId = 0,
    times = 1,
  ): void {
    if (segment.log !== null) this.entries.push({ instance, times, log: segment.log, resultId, kind });
  }
}
