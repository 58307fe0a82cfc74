import { ok, type Result } from '../../core/index.ts';
import type { ModelFacts } from '../../model/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import type { DeviceFacts } from '../device.ts';
import { TERM_NAMES } from '../estimate.ts';
import { estimateOf } from '../estimate-memory.ts';
import { walkRun } from '../walk-run.ts';
import type { MemoryExplanation } from './explanation.ts';
import { TERMS } from './terms.ts';

/**
 * An estimate with what it is made of. The numbers are those of the walk that made the estimate: nothing is computed a
 * second time here. Errors as in `estimateMemory`.
 */
export function explainMemory(
  asked: PlanValues,
  facts: ModelFacts,
  device: DeviceFacts = {},
): Result<MemoryExplanation> {
  const walked = walkRun(asked, facts, device, { records: true, explains: true });
  if (!walked.ok) return walked;
  const run = walked.value;
  const estimate = estimateOf(run, asked, facts, device);
  const { phase, peak } = run.step.timeline.highest();
  const terms = TERM_NAMES.flatMap((term) => {
    const bytes = estimate.vram.terms[term];
    return bytes === 0 ? [] : [{ term, bytes, ...TERMS[term]({ run, facts, device, estimate, bytes }) }];
  });
  return ok({
    estimate,
    peak: { phase, where: peak.where, op: peak.at && (peak.at.name || peak.at.op) },
    phases: run.step.timeline.phases(),
    terms,
  });
}

export type { ExplainedTerm, MemoryExplanation, PeakPlace, PhasePeak } from './explanation.ts';
