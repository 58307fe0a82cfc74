import type { Phase } from '../estimate.ts';
import { OWNERS, type Segment } from '../tape/tape.ts';

export interface Peak {
  readonly bytes: number;
  readonly owners: Float64Array;
}

const NOTHING: Peak = { bytes: 0, owners: new Float64Array(OWNERS) };

/** Absolute device memory by owner through one step, built from relative segments. */
export class Timeline {
  readonly now = new Float64Array(OWNERS);
  private readonly peaks = new Map<Phase, Peak>();

  total(): number {
    let sum = 0;
    for (let i = 0; i < OWNERS; i += 1) sum += this.now[i]!;
    return sum;
  }

  add(owner: number, bytes: number): void {
    this.now[owner]! += bytes;
  }

  /** Plays a segment: its peak stands on what is alive now, its end becomes what is alive. */
  play(phase: Phase, segment: Segment): void {
    this.note(phase, segment.peak, segment.peakOwners);
    for (let i = 0; i < OWNERS; i += 1) this.now[i]! += segment.endOwners[i]!;
  }

  /** Only what a segment left behind, at the time that it happens. */
  settle(segment: Segment): void {
    for (let i = 0; i < OWNERS; i += 1) this.now[i]! += segment.endOwners[i]!;
  }

  /** Records a transient of `bytes` on top of what is alive. */
  note(phase: Phase, bytes: number, owners: Float64Array): void {
    const sum = this.total() + bytes;
    const known = this.peaks.get(phase);
    if (known && known.bytes >= sum) return;
    const at = new Float64Array(this.now);
    for (let i = 0; i < OWNERS; i += 1) at[i]! += owners[i]!;
    this.peaks.set(phase, { bytes: sum, owners: at });
  }

  peak(phase: Phase): Peak {
    return this.peaks.get(phase) ?? NOTHING;
  }

  phases(): readonly Phase[] {
    return [...this.peaks.keys()];
  }
}
