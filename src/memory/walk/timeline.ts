import type { Phase } from '../estimate.ts';
import { noOwners, OWNERS, type Owners, type Place, type Segment } from '../tape/tape.ts';

/** A part of the step: named, or layers counted from 0, as in parameter names. In words only where somebody reads them. */
export type Part = string | { readonly first: number; readonly times: number };

const partText = (part: Part): string => {
  if (typeof part === 'string') return part;
  const { first, times } = part;
  return times === 1 ? `layer ${first}` : `layers ${first} to ${first + times - 1}`;
};

/** The highest point of a phase. */
export class Peak {
  bytes = -1;
  readonly owners = noOwners();
  part: Part = '';
  /** What ran in it. */
  at: Place | undefined = undefined;

  /** The part of the step, `layer 3`. */
  get where(): string {
    return partText(this.part);
  }
}

/** One stretch of the step as it was played, for explanations. */
export interface PlayedSegment {
  readonly phase: Phase;
  readonly where: string;
  readonly times: number;
  /** Highest over its start, and what one of them leaves behind, bytes. */
  readonly peakBytes: number;
  readonly endBytes: number;
}

/** Absolute device memory by owner through one step, built from relative segments. */
export class Timeline {
  readonly now = noOwners();
  private readonly peaks = new Map<Phase, Peak>();
  /** Filled where an explanation is asked for. */
  readonly played: PlayedSegment[] = [];

  constructor(private readonly records = false) {}

  /** What the first segment after `keep` has left to its owner, bytes. */
  firstKept = 0;
  private reduced = -1;
  private share = 1;
  private nextShare = 1;

  /**
   * From now on only this share of what a segment leaves to `owner` stays: shards of gradients. `first`: the share of the first
   * segment.
   */
  keep(owner: number, share: number, first = share): void {
    this.reduced = owner;
    this.share = first;
    this.nextShare = share;
  }

  total(): number {
    let sum = 0;
    for (let i = 0; i < OWNERS; i += 1) sum += this.now[i]!;
    return sum;
  }

  add(owner: number, bytes: number): void {
    this.now[owner]! += bytes;
  }

  /**
   * Plays a segment `times` times in a row: its peak stands on what is alive then, its end becomes what is alive. As every
   * repetition adds the same, the highest is the last or the first.
   */
  play(phase: Phase, segment: Segment, part: Part, times = 1): void {
    if (this.records) {
      const where = partText(part);
      this.played.push({ phase, where, times, peakBytes: segment.peak, endBytes: segment.end });
    }
    const grows = times > 1 && this.growth(segment) > 0;
    if (grows) this.settle(segment, times - 1);
    this.note(phase, segment.peak, segment.peakOwners, part, segment.at);
    this.settle(segment, grows ? 1 : times);
    if (this.share !== this.nextShare) this.firstKept = this.share * segment.endOwners[this.reduced]!;
    this.share = this.nextShare;
  }

  private growth(segment: Segment): number {
    if (this.reduced < 0) return segment.end;
    return segment.end - segment.endOwners[this.reduced]! * (1 - this.share);
  }

  /** Only what a segment leaves behind. */
  settle(segment: Segment, times = 1): void {
    const { endOwners } = segment;
    for (let i = 0; i < OWNERS; i += 1) {
      this.now[i]! += times * endOwners[i]! * (i === this.reduced ? this.share : 1);
    }
  }

  /** Records a transient of `bytes` on top of what is alive. */
  note(phase: Phase, bytes: number, owners: Readonly<Owners>, part: Part, at?: Place): void {
    const peak = this.higher(phase, this.total() + bytes, part, at);
    if (peak) for (let i = 0; i < OWNERS; i += 1) peak.owners[i] = this.now[i]! + owners[i]!;
  }

  /** The same where all of it has one owner. */
  noteOf(phase: Phase, bytes: number, owner: number, part: Part): void {
    const peak = this.higher(phase, this.total() + bytes, part, undefined);
    if (!peak) return;
    for (let i = 0; i < OWNERS; i += 1) peak.owners[i] = this.now[i]!;
    peak.owners[owner]! += bytes;
  }

  /** The phase's peak where it is `bytes` now and was lower before. */
  private higher(phase: Phase, bytes: number, part: Part, at: Place | undefined): Peak | undefined {
    let peak = this.peaks.get(phase);
    if (!peak) {
      peak = new Peak();
      peak.part = part;
      peak.at = at;
      this.peaks.set(phase, peak);
    }
    if (peak.bytes >= bytes) return undefined;
    peak.bytes = bytes;
    peak.part = part;
    peak.at = at;
    return peak;
  }

  peak(phase: Phase): Readonly<Peak> | undefined {
    return this.peaks.get(phase);
  }

  /** Every phase's peak, in the order they came. */
  phases(): { readonly phase: Phase; readonly bytes: number; readonly where: string }[] {
    return [...this.peaks].map(([phase, { bytes, where }]) => ({ phase, bytes: Math.round(bytes), where }));
  }

  /** The phase with the highest peak. */
  highest(): { readonly phase: Phase; readonly peak: Readonly<Peak> } {
    let best: { phase: Phase; peak: Peak } | undefined;
    for (const [phase, peak] of this.peaks) {
      if (!best || peak.bytes > best.peak.bytes) best = { phase, peak };
    }
    if (best) return best;
    const peak = new Peak();
    peak.bytes = this.total();
    for (let i = 0; i < OWNERS; i += 1) peak.owners[i] = this.now[i]!;
    peak.part = 'loading';
    return { phase: 'load', peak };
  }
}
