import { type GpuFit, type GpuSurvey, hostRamToRent, howText } from '../gpu-survey.ts';
import { changeJson, checkJson, SCHEMA_VERSION } from './check-json.ts';
import { estimateBody } from './estimate-json.ts';

const cardJson = (fit: GpuFit) => {
  const { plan } = fit;
  const planned = plan.verdict === 'refuse' ? plan.refusal.smallest : plan;
  return {
    gpu: fit.gpu,
    memory_bytes: fit.totalBytes,
    count: fit.count,
    ...(fit.sharded ? { strategy: fit.sharded } : {}),
    verdict: plan.verdict,
    how: howText(fit),
    changes: planned.changes.map(changeJson),
    ...(plan.verdict === 'refuse' ? { shortfall_bytes: Math.round(plan.refusal.shortfallBytes) } : {}),
    estimate: estimateBody(planned.estimate),
    host_ram_gb: hostRamToRent(fit.hostRamBytes),
  };
};

/** `snug gpus --json`: the launch as `check --json` shows it, without a card of its own, and every card of the catalogue. */
export function gpuSurveyJson({ report, fits }: GpuSurvey) {
  const { launch, spec, unread } = checkJson(report);
  return { schema_version: SCHEMA_VERSION, launch, spec, unread, gpus: fits.map(cardJson) };
}
