import { growthOf, type MemoryGrowth, type RunSample, type Slowdown, slowdownOf } from '../diagnosis/index.ts';

/** Samples kept of a run of any length; past it every other one goes. */
const MOST_SAMPLES = 512;
/** Looks at all of them are this far apart at least, in samples. */
const LOOK_EVERY = 8;

/** What the samples of a run tell together. */
export interface Trends {
  readonly vramGrowth?: MemoryGrowth;
  readonly ramGrowth?: MemoryGrowth;
  readonly slowdown?: Slowdown;
}

/** Told once each, while the run goes on. */
export interface TrendListeners {
  readonly onGrowth?: (growth: MemoryGrowth, memory: 'vram' | 'ram') => void;
  readonly onSlowdown?: (slowdown: Slowdown) => void;
}

export interface TrendWatchOptions extends TrendListeners {
  /** Of the smallest card, bytes. */
  readonly vramCapacityBytes?: number | undefined;
  /** What the run may use of the host's memory, bytes. */
  readonly ramCapacityBytes?: number | undefined;
  /** Steps the run is going to make; undefined: not known yet. */
  readonly plannedSteps: () => number | undefined;
}

/** Watches how memory and step times develop. */
export interface TrendWatch {
  readonly take: (sample: RunSample) => void;
  readonly trends: () => Trends;
}

export function createTrendWatch(options: TrendWatchOptions): TrendWatch {
  let samples: RunSample[] = [];
  let every = 1;
  let seen = 0;
  let nextLook = LOOK_EVERY;
  const told = new Set<string>();
  const once = (what: string, tell: () => void): void => {
    if (told.has(what)) return;
    told.add(what);
    tell();
  };
  const trends = (): Trends => {
    const vramGrowth = growthOf(samples, 'vramBytes', options.vramCapacityBytes);
    const ramGrowth = growthOf(samples, 'ramBytes', options.ramCapacityBytes);
    const slowdown = slowdownOf(samples, options.vramCapacityBytes);
    return {
      ...(vramGrowth ? { vramGrowth } : {}),
      ...(ramGrowth ? { ramGrowth } : {}),
      ...(slowdown ? { slowdown } : {}),
    };
  };
  /** Growth that ends before the memory does is nobody's concern. */
  const matters = ({ fullAtStep }: MemoryGrowth): boolean =>
    fullAtStep !== undefined && fullAtStep <= (options.plannedSteps() ?? Number.POSITIVE_INFINITY);
  const look = (): void => {
    const { vramGrowth, ramGrowth, slowdown } = trends();
    if (vramGrowth && matters(vramGrowth)) once('vram', () => options.onGrowth?.(vramGrowth, 'vram'));
    if (ramGrowth && matters(ramGrowth)) once('ram', () => options.onGrowth?.(ramGrowth, 'ram'));
    if (slowdown) once('slow', () => options.onSlowdown?.(slowdown));
  };
  return {
    take(sample) {
      if (seen++ % every !== 0) return;
      samples.push(sample);
      if (samples.length >= MOST_SAMPLES) {
        samples = samples.filter((_, at) => at % 2 === 0);
        every *= 2;
        nextLook = samples.length + LOOK_EVERY;
      }
      if (samples.length < nextLook) return;
      nextLook = samples.length + LOOK_EVERY;
      look();
    },
    trends,
  };
}
