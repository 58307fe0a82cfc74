import { assertNever, type Diagnostic } from '../../core/index.ts';
import type { LaunchReading } from '../../dialects/index.ts';
import type { Alternative, Refusal } from '../../planner/index.ts';
import { formatOrigin, type SettingName, type SpecChange, settingKey, type TrainingSpec } from '../../spec/index.ts';
import type { CheckReport } from '../check-report.ts';
import { maskSecrets } from '../mask-secrets.ts';
import { refusalDiagnostic } from '../verdict.ts';
import { estimateBody } from './estimate-json.ts';
import { settingDetails, settingJson } from './setting-json.ts';
import { snakeCased } from './snake-case.ts';

/** Version of the JSON forms of `snug check` and `snug diagnose`. */
export const SCHEMA_VERSION = 1;

const specJson = (spec: TrainingSpec, { parallelism, parts: known }: Pick<LaunchReading, 'parallelism' | 'parts'>) =>
  Object.fromEntries(
    (Object.keys(spec) as SettingName[]).flatMap((name) => {
      const setting = spec[name];
      if (!setting) return [];
      const { value, origin } = setting;
      // Where a setting is not known as a whole, its parts are said one by one.
      const part = name === 'distributed' ? parallelism : known?.[name];
      const parts = value === null && part ? snakeCased(part) : undefined;
      const entry = {
        value: parts ?? settingJson(name, value),
        origin: formatOrigin(origin),
        ...settingDetails(name, value),
      };
      return [[settingKey(name), entry]];
    }),
  );

/** A change in the form of `plan.changes`. */
export const changeJson = (change: SpecChange) => ({
  setting: settingKey(change.setting),
  from: settingJson(change.setting, change.from),
  to: settingJson(change.setting, change.to),
  lever: change.lever,
  class: change.class,
  saves_bytes: Math.round(change.savesBytes),
  cost: change.cost,
});

/** A diagnostic with its parts that are there; secrets masked. */
export const diagnosticJson = ({ code, severity, message, location, excerpt, notes, help }: Diagnostic) => ({
  code,
  severity,
  message: maskSecrets(message),
  ...(location === undefined ? {} : { location }),
  ...(excerpt === undefined ? {} : { excerpt: maskSecrets(excerpt) }),
  ...(notes === undefined || notes.length === 0 ? {} : { notes: notes.map((text) => maskSecrets(text)) }),
  ...(help === undefined ? {} : { help: maskSecrets(help) }),
});

/** What `--json` prints where a launch could not even be read. */
export const diagnosticsJson = (diagnostics: readonly Diagnostic[]) => ({
  schema_version: SCHEMA_VERSION,
  diagnostics: diagnostics.map(diagnosticJson),
});

/** A launch of which only the command line could be read: no machine, no estimate, no plan. */
export const partialCheckJson = (reading: LaunchReading, diagnostics: readonly Diagnostic[]) =>
  checkJson({
    argv: reading.command.argv,
    env: reading.env,
    reading,
    spec: reading.spec,
    hardware: { gpus: [], source: 'none', notes: [], host: undefined, sharedMemory: undefined, disk: undefined },
    diagnostics: [...diagnostics, ...reading.diagnostics],
  });

const refusalJson = (refusal: Refusal) => ({
  shortfall_bytes: Math.round(refusal.shortfallBytes),
  host_shortfall_bytes: Math.round(refusal.hostShortfallBytes),
  smallest: { changes: refusal.smallest.changes.map(changeJson), estimate: estimateBody(refusal.smallest.estimate) },
  would_fit: refusal.wouldFit.map(({ allow, changes, estimate }) => ({
    allow,
    changes: changes.map(changeJson),
    estimate: estimateBody(estimate),
  })),
  if_told: refusal.ifTold
    ? {
        settings: refusal.ifTold.settings.map(settingKey),
        changes: refusal.ifTold.changes.map(changeJson),
        estimate: estimateBody(refusal.ifTold.estimate),
      }
    : null,
  unavailable: refusal.unavailable.map(({ lever, reason }) => ({ lever, reason })),
});

/** What would be started: the fitted launch, or the command as it came where nothing is changed. */
const launchOf = ({ argv, env, fitted, plan }: CheckReport) =>
  plan?.verdict === 'refuse'
    ? { command: [], env: {}, files: [] }
    : {
        command: maskSecrets(fitted?.argv ?? argv),
        env: maskSecrets(fitted?.env ?? (fitted ? {} : env)),
        files: (fitted?.files ?? []).map(({ source, copy }) => ({ source, copy })),
        ...(fitted?.byHand ? { by_hand: { ...fitted.byHand, command: maskSecrets(fitted.byHand.command) } } : {}),
      };

/** No prediction of time is finer. */
const twoDigits = (factor: number): number => Math.round(factor * 100) / 100;

const alternativeJson = ({ changes, estimate, stepFactor }: Alternative) => ({
  changes: changes.map(changeJson),
  step_time_factor: twoDigits(stepFactor),
  estimate: estimateBody(estimate),
});

function planJson(report: CheckReport) {
  const { plan } = report;
  if (!plan) return null;
  const launch = launchOf(report);
  switch (plan.verdict) {
    case 'unknown':
      return { verdict: plan.verdict, changes: [], estimate: null, ...launch, reason: diagnosticJson(plan.reason) };
    case 'fits':
    case 'rewrite':
      return {
        verdict: plan.verdict,
        changes: plan.changes.map(changeJson),
        ...(plan.verdict === 'rewrite' ? { step_time_factor: twoDigits(plan.stepFactor) } : {}),
        estimate: estimateBody(plan.estimate),
        ...launch,
        ...(plan.verdict === 'rewrite' && plan.alternatives
          ? { alternatives: plan.alternatives.map(alternativeJson) }
          : {}),
      };
    case 'refuse':
      return {
        verdict: plan.verdict,
        changes: [],
        estimate: estimateBody(plan.estimate),
        ...launch,
        refusal: refusalJson(plan.refusal),
      };
    default:
      return assertNever(plan);
  }
}

/** One config of `snug check --json`. What could not be found out is null; a setting that does not apply is absent. */
export function checkJson(report: CheckReport) {
  const { argv, env, reading, spec, model, hardware, device, estimate, budget, diagnostics } = report;
  return {
    schema_version: SCHEMA_VERSION,
    launch: {
      argv: maskSecrets(argv),
      env: maskSecrets(env),
      stack: reading.stack.map(({ dialect, kind, via }) => ({ dialect, kind, ...(via ? { via } : {}) })),
      wrappers: [...reading.wrappers],
      files: [...reading.files],
    },
    spec: specJson(spec, reading),
    unread: reading.unread.map(({ key, origin, reason }) => ({ key, origin: formatOrigin(origin), reason })),
    model: model
      ? {
          place: model.place,
          source: model.source,
          model_type: model.facts.modelType,
          parameters: model.facts.parameters,
        }
      : null,
    hardware: { ...(snakeCased(hardware) as object), device: device ? device.index : null },
    estimate: estimate ? estimateBody(estimate) : null,
    budget: budget ? (snakeCased(budget) as Record<string, number>) : null,
    plan: planJson(report),
    diagnostics: [...diagnostics, ...refusalOf(report)].map(diagnosticJson),
  };
}

/** The error that the text form shows for a refusal. */
const refusalOf = (report: CheckReport): readonly Diagnostic[] =>
  report.plan?.verdict === 'refuse' && !report.diagnostics.some(({ code }) => code === 'does-not-fit')
    ? [refusalDiagnostic(report, report.plan)]
    : [];
