import { type AllocationLog, UNIT } from '../allocator/script.ts';
import { TERM_NAMES, type TermName } from '../estimate.ts';
import type { Buffer, Place } from './tensor.ts';

/** Index of a term in a vector of owners. */
export const owner = (name: TermName): number => TERM_NAMES.indexOf(name);
export const OWNERS: number = TERM_NAMES.length;

/** A number for every owner. */
export type Owners = number[];

/** As many as there are terms. */
type Zeroes = Record<keyof typeof TERM_NAMES & `${number}`, 0> & { readonly length: typeof TERM_NAMES.length };

/** Nothing of any owner. A plain list: a typed array of this size lives outside V8's heap, which is dear for so small a thing. */
export const noOwners = (): Owners => [0, 0, 0, 0, 0, 0, 0, 0, 0, 0] satisfies Zeroes;

/** What one stretch of the step did to memory, relative to its start, by owner. */
export interface Segment {
  /** Highest sum over the start, bytes. */
  readonly peak: number;
  readonly peakOwners: Readonly<Owners>;
  /** What it left behind in all, bytes (negative: freed). */
  readonly end: number;
  readonly endOwners: Readonly<Owners>;
  readonly log: AllocationLog | null;

  /** What ran when it was highest. */
  readonly at: Place | undefined;
}

/** Sums up what is alive and remembers when it was most; counts in units, since the inner loop is here. */
export class Meter {
  total = 0;
  private peak = 0;
  private peakAt: Place | undefined;
  /** The peak is now: its owners are copied when the first of them goes. */
  private peaking = false;
  private readonly live = noOwners();
  private readonly atPeak = noOwners();

  begin(): void {
    this.live.fill(0);
    this.atPeak.fill(0);
    this.peaking = false;
    this.total = 0;
    this.peak = 0;
    this.peakAt = undefined;
  }

  end(log: AllocationLog | null): Segment {
    if (this.peaking) this.keepPeak();
    return {
      peak: this.peak * UNIT,
      peakOwners: inBytes(this.atPeak),
      end: this.total * UNIT,
      endOwners: inBytes(this.live),
      log,
      at: this.peakAt,
    };
  }

  add(units: number, to: number, at: Place | undefined): void {
    this.live[to]! += units;
    this.total += units;
    if (this.total > this.peak) {
      this.peak = this.total;
      this.peakAt = at;
      this.peaking = true;
    }
  }

  remove(buffer: Buffer): void {
    if (this.peaking) this.keepPeak();
    this.live[buffer.owner]! -= buffer.units;
    this.total -= buffer.units;
  }

  /** The same bytes under another owner. */
  move(buffer: Buffer, to: number): void {
    if (this.peaking) this.keepPeak();
    this.live[buffer.owner]! -= buffer.units;
    this.live[to]! += buffer.units;
  }

  private keepPeak(): void {
    this.peaking = false;
    for (let i = 0; i < OWNERS; i += 1) this.atPeak[i] = this.live[i]!;
  }
}

function inBytes(units: Readonly<Owners>): Owners {
  const bytes = noOwners();
  for (let i = 0; i < OWNERS; i += 1) bytes[i] = units[i]! * UNIT;
  return bytes;
}
