import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { contextBytes, type DeviceFacts } from './device.ts';
import { type MemoryEstimate, TERM_NAMES, type TermName } from './estimate.ts';
import { intervalsOf } from './intervals.ts';
import { fragmentationBytes, lossSegmentBytes } from './reserved.ts';
import type { Sharding } from './sharding.ts';
import type { Peak } from './walk/timeline.ts';

type Sums = Omit<MemoryEstimate['vram'], 'peakPhase'>;

/** Allocated, reserved, device peak, the interval around it, and the terms that add up to it. */
export function devicePeak(
  values: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts,
  peak: Readonly<Peak>,
  sharding: Sharding,
  rowsPerRow: number,
  /** What the played allocator has reserved; undefined: segments grow in place, and it was not played. */
  simulatedBytes: number | undefined,
): Sums {
  const at = (name: TermName): number => peak.owners[TERM_NAMES.indexOf(name)]!;
  const allocated = Math.round(peak.bytes);
  const wasted = fragmentationBytes({
    allocatedBytes: allocated,
    simulatedBytes,
    transientBytes: at('activations') + at('logits') + at('temporaryBuffers'),
    gatheredBytes: sharding.engine !== 'ddp' && sharding.weightShare < 1 ? at('communicationBuffers') : 0,
    sharding,
    trainsUnits: values.method === 'full',
  });
  const context = contextBytes(device, sharding.ranks);
  const terms = Object.fromEntries(TERM_NAMES.map((name) => [name, Math.round(at(name))])) as Record<TermName, number>;
  // Rounding of shares may leave a byte or two: they belong to the largest transient owner.
  const rest = allocated - TERM_NAMES.reduce((total, name) => total + terms[name], 0);
  terms.temporaryBuffers += rest;
  terms.fragmentation = wasted;
  terms.cudaContext = context.bytes;
  const reserved = allocated + wasted;
  return {
    allocatedPeakBytes: allocated,
    reservedPeakBytes: reserved,
    devicePeakBytes: reserved + context.bytes,
    ...intervalsOf({
      values,
      facts,
      sharding,
      rowsPerRow,
      allocatedBytes: allocated,
      fragmentationBytes: wasted,
      playsAllocator: simulatedBytes !== undefined,
      lossSegmentBytes: simulatedBytes === undefined ? 0 : lossSegmentBytes(values, facts, rowsPerRow),
      context,
      capacityBytes: device.capacityBytes,
    }),
    terms,
  };
}
