import type { MemoryExplanation } from '../../memory/index.ts';
import { settingKey } from '../../spec/index.ts';

/** What `snug estimate --explain --json` adds to an estimate. */
export const explainBody = ({ peak, phases, terms }: MemoryExplanation) => ({
  peak: { phase: peak.phase, where: peak.where, op: peak.op ?? null },
  phases: Object.fromEntries(phases.map(({ phase, bytes }) => [phase, bytes])),
  explain: terms.map(({ term, bytes, formula, inputs, sources }) => ({
    term: settingKey(term),
    bytes,
    formula,
    inputs,
    sources: [...sources],
  })),
});
