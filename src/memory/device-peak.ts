import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { contextBytes, type DeviceFacts } from './device.ts';
import { type MemoryEstimate, TERM_NAMES, type TermName } from './estimate.ts';
import { fragmentationBytes } from './reserved.ts';
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
  const leanest = allocated - lean(values, facts, rowsPerRow);
  // What the description of the model itself may be off by.
  const unsure = allocated * (facts.uncertainty ?? 0);
  // What is allocated is known within a few percent, what the allocator adds to it within a third; 12 % of all holds nine runs in ten.
  const reservedInterval = {
    lowBytes: Math.round(Math.max(allocated * 0.8, leanest * 0.95, reserved * 0.88 - (allocated - leanest)) - unsure),
    highBytes: Math.round(reserved * 1.1 + unsure),
  };
  return {
    allocatedPeakBytes: allocated,
    reservedPeakBytes: reserved,
    devicePeakBytes: reserved + context.bytes,
    lowBytes: reservedInterval.lowBytes + context.lowBytes,
    highBytes: reservedInterval.highBytes + context.highBytes,
    intervals: {
      allocated: {
        lowBytes: Math.round(Math.max(allocated * 0.8, leanest * 0.94) - unsure),
        highBytes: Math.round(allocated * 1.06 + unsure),
      },
      reserved: reservedInterval,
    },
    terms,
  };
}

/** What rows without padding save: fused kernels then take no mask and grouped heads as they are. */
function lean(values: PlanValues, facts: ModelFacts, rowsPerRow: number): number {
  if (values.attnImplementation !== 'sdpa' || values.attentionMask) return 0;
  const rows = values.perDeviceTrainBatchSize * rowsPerRow;
  const mask = rows * values.maxLength ** 2 * 2;
  return values.gradientCheckpointing.enabled ? mask : mask * facts.numHiddenLayers;
}
