export { type ChangeContext, renderChanges } from './change-text.ts';
export type { CheckReport, UnknownPlan } from './check-report.ts';
export { type CheckTextOptions, renderCheck } from './check-text.ts';
export { renderDiagnostic } from './diagnostic-text.ts';
export { changeJson, checkJson, diagnosticJson, SCHEMA_VERSION } from './json/check-json.ts';
export { estimateErrorJson, estimateJson } from './json/estimate-json.ts';
export { maskSecrets } from './mask-secrets.ts';
export type { TextOptions } from './text-options.ts';
export { refusalDiagnostic } from './verdict.ts';
