import type { MemoryEstimate } from '../../memory/index.ts';
import { TERM_NAMES } from '../../memory/index.ts';
import { settingKey } from '../../spec/index.ts';

const whole = (terms: readonly (readonly [string, number])[]): Record<string, number> =>
  Object.fromEntries(terms.map(([name, bytes]) => [settingKey(name), Math.round(bytes)]));

/** An estimate in the form of `snug estimate --json` and `snug check --json`: snake_case names, integer bytes. */
export const estimateBody = ({ params, vram, ram, assumptions }: MemoryEstimate) => ({
  params: { total: Math.round(params.total), trainable: Math.round(params.trainable) },
  vram: {
    allocated_peak_bytes: Math.round(vram.allocatedPeakBytes),
    reserved_peak_bytes: Math.round(vram.reservedPeakBytes),
    device_peak_bytes: Math.round(vram.devicePeakBytes),
    low_bytes: Math.round(vram.lowBytes),
    high_bytes: Math.round(vram.highBytes),
    peak_phase: vram.peakPhase,
    // Only runs that generate have an engine of their own.
    terms: whole(
      TERM_NAMES.filter((name) => name !== 'inferenceEngine' || vram.terms[name] > 0).map((name) => [
        name,
        vram.terms[name],
      ]),
    ),
  },
  ram: {
    peak_bytes: Math.round(ram.peakBytes),
    needed_bytes: Math.round(ram.neededBytes),
    terms: whole(Object.entries(ram.terms)),
  },
  assumptions: [...assumptions],
});

/** One line of `snug estimate --plans`. */
export const estimateJson = (id: string, estimate: MemoryEstimate) => ({ id, ...estimateBody(estimate) });

/** The line of a plan that cannot be estimated. */
export const estimateErrorJson = (
  id: string,
  { code, message }: { readonly code: string; readonly message: string },
) => ({
  id,
  error: { code, message },
});
