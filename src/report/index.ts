import type { GpuSurvey } from './gpu-survey.ts';
import type { GpuSurveyOptions } from './gpu-survey-text.ts';

export { type ChangeContext, renderChanges } from './change-text.ts';
export type { CheckReport, UnknownPlan } from './check-report.ts';
export { type CheckTextOptions, renderCheck, renderEstimate } from './check-text.ts';
export type { KnownNames } from './diagnosis/markdown.ts';
export type { Language } from './diagnosis/phrases/index.ts';
export type {
  DiagnosisNote,
  DiagnosisReport,
  FittingSettings,
  LargerCard,
  Remedy,
  ShownEdit,
} from './diagnosis/report.ts';
export { renderDiagnostic } from './diagnostic-text.ts';
export { renderDialect, renderDialects } from './dialects-text.ts';
export { renderDryRun, unifiedDiff } from './dry-run.ts';
export { peakPlaceText, renderExplanation } from './explain-text.ts';
export { failureNumbers, failureTitle } from './failure-text.ts';
export { CHECK_FORMATS, type CheckedLaunch, type CheckFormat } from './formats/index.ts';
export { type GpuFit, type GpuSurvey, hostRamToRent } from './gpu-survey.ts';
export type { HostRamLever, HostRamOut } from './host-ram-text.ts';
export {
  changeJson,
  checkJson,
  diagnosticJson,
  diagnosticsJson,
  partialCheckJson,
  SCHEMA_VERSION,
} from './json/check-json.ts';
export { dialectsJson } from './json/dialects-json.ts';
export { estimateBody, estimateErrorJson, estimateJson } from './json/estimate-json.ts';
export { explainBody } from './json/explain-json.ts';
export { gpuSurveyJson } from './json/gpu-survey-json.ts';
export { runEventJson } from './json/run-event-json.ts';
export { snakeCased } from './json/snake-case.ts';
export { maskKnown, secretsIn } from './mask-known.ts';
export { maskSecrets } from './mask-secrets.ts';
export type { AttemptEnd, RunEvent } from './run-event.ts';
export { type AttemptSummary, exitText, type RunSummary, renderRunSummary } from './run-summary.ts';
export { renderRunEvent } from './run-text.ts';
export { renderStart } from './start-text.ts';
export type { TextOptions } from './text-options.ts';
export { refusalDiagnostic } from './verdict.ts';

/** The forms of `snug diagnose`, with their catalogue in every language: loaded only where a run is diagnosed. */
export const diagnosisForms = () => import('./diagnosis/forms.ts');

/** `snug gpus` as a table. Tables are loaded only where one is drawn. */
export const renderGpuSurvey = async (survey: GpuSurvey, options: GpuSurveyOptions): Promise<string> =>
  (await import('./gpu-survey-text.ts')).renderGpuSurvey(survey, options);
