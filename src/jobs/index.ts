import type { Ports } from '../core/index.ts';
import type { ContinueRequest } from './continue-run.ts';
import type { DiagnoseOutcome, DiagnoseRequest } from './diagnose/diagnose.ts';
import type { OpenLog } from './diagnose/read-logs.ts';
import type { RunHost, RunRequest } from './run.ts';
import type { RunResult } from './run-result.ts';

export { check } from './check.ts';
export type { ContinueRequest } from './continue-run.ts';
export type { DiagnoseOutcome, DiagnoseRequest } from './diagnose/diagnose.ts';
export type { OpenedLog, OpenLog } from './diagnose/read-logs.ts';
export { estimatePlans, type PlanEstimate } from './estimate-plans.ts';
export { explainChecked } from './explain.ts';
export type { LaunchTarget } from './launch-target.ts';
export type { Preflight, PreflightOutcome, PreflightRequest } from './preflight.ts';
export type { RunHost, RunRequest } from './run.ts';
export type { Ending } from './run-record.ts';
export type { RunResult } from './run-result.ts';
export { type SurveyOutcome, surveyGpus } from './survey-gpus.ts';

/** Starting and supervising is loaded only when something is started. */
export const run = async (ports: Ports, request: RunRequest, host: RunHost): Promise<RunResult> =>
  (await import('./run.ts')).run(ports, request, host);

/** Says what ended a run that is over; loaded only then. */
export const diagnose = async (ports: Ports, request: DiagnoseRequest, open: OpenLog): Promise<DiagnoseOutcome> =>
  (await import('./diagnose/diagnose.ts')).diagnose(ports, request, open);

/** Goes on with a run that was broken off. */
export const continueRun = async (ports: Ports, request: ContinueRequest, host: RunHost): Promise<RunResult> =>
  (await import('./continue-run.ts')).continueRun(ports, request, host);
export { whyUnreadable } from './why-unreadable.ts';
