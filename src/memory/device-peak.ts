import type { ModelFacts } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { contextBytes, type DeviceFacts } from './device.ts';
import { type MemoryEstimate, TERM_NAMES, type TermName } from './estimate.ts';
import { fragmentationOf } from './reserved.ts';
import type { Sharding } from './sharding.ts';
import { versionFacts } from './versions.ts';
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
): Sums {
  const at = (name: TermName): number => peak.owners[TERM_NAMES.indexOf(name)]!;
  const rows = values.perDeviceTrainBatchSize * rowsPerRow * values.maxLength;
  const allocated = Math.round(peak.bytes);
  const fragmentation = fragmentationOf({
    allocatedBytes: allocated,
    transientBytes: at('activations') + at('logits') + at('temporaryBuffers'),
    gatheredBytes: sharding.engine !== 'ddp' && sharding.weightShare < 1 ? at('communicationBuffers') : 0,
    logitsBytes: values.lossImpl === 'full' ? rows * facts.vocabSize * 4 : 0,
    olderLoss: versionFacts(values.versions).shiftsLogits,
    allocatorConf: values.allocatorConf,
  });
  const context = contextBytes(device, sharding.ranks);
  const terms = Object.fromEntries(TERM_NAMES.map((name) => [name, Math.round(at(name))])) as Record<TermName, number>;
  // Rounding of shares may leave a byte or two: they belong to the largest transient owner.
  const rest = allocated - TERM_NAMES.reduce((total, name) => total + terms[name], 0);
  terms.temporaryBuffers += rest;
  terms.fragmentation = fragmentation.bytes;
  terms.cudaContext = context.bytes;
  const reserved = allocated + fragmentation.bytes;
  return {
    allocatedPeakBytes: allocated,
    reservedPeakBytes: reserved,
    devicePeakBytes: reserved + context.bytes,
    lowBytes: Math.max(Math.round(allocated * 0.8), allocated - lean(values, facts, rowsPerRow)) + context.lowBytes,
    highBytes: Math.round(allocated + fragmentation.highBytes) + context.highBytes,
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
