import type { AllocationLog, ScriptEntry } from './script.ts';

/** Layers in a row that are played at once: one, event by event, or more. */
export interface LayerGroup {
  /** Its number among all groups, from 1. */
  readonly row: number;
  /** That of the first group after those of the first layers of its kind, and how many layers these are. */
  readonly others: number;
  readonly lead: number;
  /** Places of the first one and after the last one among the layers of its kind. */
  readonly from: number;
  readonly to: number;
  /** Layers of its kind. */
  readonly of: number;
}

/**
 * Runs that the others of a kind are drawn together to. Kept blocks of a run are asked for at once, before and after what comes and
 * goes in the layer beside it: with one run more reserved memory is missed, a third one costs more than it shows.
 */
const RUNS = 2;

/** Layers of a script by kind: those are alike whose forward passes have the same recording. */
export class Layers {
  /** Groups so far, and one: row 0 is everything that is no layer. */
  rows = 1;
  private readonly kindOf: number[] = [];
  private readonly placeOf: number[] = [];
  private groups: LayerGroup[][] = [];

  /** Alone are the first `lead` of a kind, the last one, and one between runs of the others. */
  read(script: readonly ScriptEntry[], lead: number): void {
    const { kindOf, placeOf } = this;
    kindOf.length = 0;
    const byLog = new Map<AllocationLog, number>();
    const counts: number[] = [];
    for (const { instance, log, times } of script) {
      if (instance === 0 || kindOf[instance] !== undefined) continue;
      let kind = byLog.get(log);
      if (kind === undefined) {
        kind = counts.length;
        byLog.set(log, kind);
        counts.push(0);
      }
      for (let i = 0; i < times; i += 1) {
        kindOf[instance + i] = kind;
        placeOf[instance + i] = counts[kind]!;
        counts[kind]! += 1;
      }
    }
    this.rows = 1;
    this.groups = counts.map((count) => this.groupsOf(count, lead));
  }

  /** The group that a layer begins, going forward, or ends, going backward; undefined: it was played with another one. */
  groupAt(instance: number, kind: ScriptEntry['kind']): LayerGroup | undefined {
    const place = this.placeOf[instance]!;
    const groups = this.groups[this.kindOf[instance]!]!;
    for (const group of groups) {
      if (place < group.to) return place === (kind === 'forward' ? group.from : group.to - 1) ? group : undefined;
    }
    return undefined;
  }

  private groupsOf(count: number, lead: number): LayerGroup[] {
    const groups: LayerGroup[] = [];
    const last = count - 1;
    const size = Math.max(1, Math.ceil((last - lead) / RUNS));
    const others = this.rows + lead;
    let afterRun = false;
    for (let from = 0; from < count; ) {
      const alone: boolean = from < lead || from >= last || afterRun;
      const to: number = alone ? from + 1 : Math.min(last, from + size);
      afterRun = to - from > 1;
      groups.push({ row: this.rows, others, lead, from, to, of: count });
      this.rows += 1;
      from = to;
    }
    return groups;
  }
}
