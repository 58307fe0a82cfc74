import type { Value, Variables } from './variables.ts';

/** A block of a script. */
export interface Frame {
  readonly kind: 'loop' | 'branch' | 'function' | 'group';
  readonly before: ReadonlyMap<string, Value | undefined>;
  /** Set inside one of the branches. */
  readonly changed: Set<string>;
  readonly case: boolean;
}

/** Blocks that are open, and what was set in them: what one branch sets is not known behind it. */
export class Scope {
  /** Names that programs see; `*`: all of them. */
  readonly exported = new Set<string>();
  readonly variables: Variables;
  private readonly frames: Frame[] = [];

  constructor(variables: Variables) {
    this.variables = variables;
  }

  get top(): Frame | undefined {
    return this.frames.at(-1);
  }

  /** The innermost block that is no mere group. */
  get block(): 'loop' | 'branch' | 'function' | undefined {
    const kind = this.frames.findLast((frame) => frame.kind !== 'group')?.kind;
    return kind === 'group' ? undefined : kind;
  }

  open(kind: Frame['kind'], isCase = false): void {
    this.frames.push({ kind, before: this.variables.snapshot(), changed: new Set(), case: isCase });
  }

  /** Another branch begins from what held before the first. */
  nextBranch(): void {
    const frame = this.frames.at(-1);
    if (frame?.kind === 'branch') this.variables.restore(frame.before);
  }

  close(kind: Frame['kind']): void {
    if (this.frames.at(-1)?.kind !== kind) return;
    const frame = this.frames.pop()!;
    if (frame.kind === 'group') {
      for (const name of frame.changed) this.frames.at(-1)?.changed.add(name);
      return;
    }
    this.variables.restore(frame.before);
    for (const name of frame.changed) this.assign(name, null);
  }

  assign(name: string, value: Value | undefined): void {
    this.variables.set(name, value);
    this.frames.at(-1)?.changed.add(name);
  }
}
