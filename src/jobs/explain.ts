import { err, type Result } from '../core/index.ts';
import { explainMemory, type MemoryExplanation } from '../memory/index.ts';
import { deviceFacts, type PreflightOutcome } from './preflight.ts';

/** What the estimate of a checked launch is made of. Without an estimate there is nothing to explain: no diagnostics. */
export function explainChecked({
  report,
  values,
  chosen,
}: Extract<PreflightOutcome, { kind: 'checked' }>): Result<MemoryExplanation> {
  return report.model && values ? explainMemory(values, report.model.facts, deviceFacts(chosen)) : err([]);
}
