import { assertNever, formatBytes } from '../core/index.ts';
import type { Alternative } from '../planner/index.ts';
import { formatOrigin, type SettingName, settingKey } from '../spec/index.ts';
import { renderChanges } from './change-text.ts';
import type { CheckReport } from './check-report.ts';
import { renderDiagnostic } from './diagnostic-text.ts';
import { maskSecrets } from './mask-secrets.ts';
import { peaksText, renderMemoryBars } from './memory-bars.ts';
import { settingText } from './setting-text.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { refusalDiagnostic } from './verdict.ts';
import { columnsOf, wrap } from './wrap.ts';

export interface CheckTextOptions extends TextOptions {
  /** Only errors. */
  readonly quiet?: boolean;
}

/** Settings a person checks first; the rest is in the JSON. */
const SHOWN: readonly SettingName[] = [
  'objective',
  'method',
  'dtype',
  'mixedPrecision',
  'perDeviceTrainBatchSize',
  'gradientAccumulationSteps',
  'perDeviceEvalBatchSize',
  'maxLength',
  'packing',
  'gradientCheckpointing',
  'attnImplementation',
  'lossImpl',
  'optim',
  'lora',
  'quantization',
  'distributed',
];

const HEAD = 10;
const VALUE = 20;

/** `launch    accelerate + trl`, wrapped under itself. */
const headed = (head: string, text: string, options: TextOptions): string =>
  wrap(`${head.padEnd(HEAD)}${text.replaceAll('\n', `\n${' '.repeat(HEAD)}`)}`, options.width, HEAD).replace(
    head,
    paint(options, 'bold', head),
  );

const count = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;

/** `8.03 B`, `494 M`: parameters as people say them. */
const parametersText = (parameters: number): string =>
  parameters >= 1e9
    ? `${(parameters / 1e9).toFixed(2)} B`
    : `${(parameters / 1e6).toFixed(parameters < 1e7 ? 1 : 0)} M`;

/** The launch and its model, a line each. */
export function understood({ reading, model, spec, estimate }: CheckReport, options: TextOptions): string[] {
  const stack = reading.stack.map(({ dialect, via }) => (via ? `${dialect} (own command)` : dialect)).join(' + ');
  const wrapped = reading.wrappers.length > 0 ? ` inside ${reading.wrappers.join(', ')}` : '';
  const files = reading.files.length > 0 ? `; read ${reading.files.join(', ')}` : '';
  const trained = estimate ? `, ${parametersText(estimate.params.trainable)} of them trained` : '';
  return [
    headed('launch', `${stack || 'not recognised'}${wrapped}${files}`, options),
    ...(model
      ? [
          headed(
            'model',
            `${model.nameOrPath}: ${parametersText(model.facts.parameters)} parameters${trained} (${model.source}${model.place === model.nameOrPath ? '' : ` ${model.place}`})`,
            options,
          ),
        ]
      : [headed('model', `${spec.modelNameOrPath?.value ?? 'not named'}: architecture not known`, options)]),
  ];
}

function machine({ device, budget, hardware }: CheckReport, options: TextOptions): string[] {
  if (!device || !budget) return [headed('card', hardware.notes[0] ?? 'none', options)];
  const others = budget.usedByOthersBytes > 0 ? `, ${formatBytes(budget.usedByOthersBytes)} in use` : '';
  const name = hardware.source === 'planned' ? `${device.name} (planned)` : `GPU ${device.index} ${device.name}`;
  return [
    headed(
      'card',
      `${name}: ${formatBytes(budget.capacityBytes)}${others}, ${formatBytes(budget.headroomBytes)} kept free, ${formatBytes(budget.usableBytes)} for the run`,
      options,
    ),
  ];
}

function settings({ spec }: CheckReport, options: TextOptions): string[] {
  const rows = SHOWN.flatMap((name) => {
    const setting = spec[name];
    if (!setting || (setting.value === null && (name === 'lora' || name === 'quantization'))) return [];
    return [{ key: settingKey(name), value: settingText(name, setting.value), origin: formatOrigin(setting.origin) }];
  });
  const widest = Math.max(0, ...rows.map(({ key }) => key.length));
  return rows.map(({ key, value, origin }) => {
    const line = `  ${key.padEnd(widest)}  ${value.padEnd(VALUE)}  `;
    return columnsOf(line) + origin.length <= options.width
      ? line + paint(options, 'gray', origin)
      : `${wrap(`  ${key.padEnd(widest)}  ${value}`, options.width, widest + 4)}\n${' '.repeat(widest + 4)}${paint(options, 'gray', origin)}`;
  });
}

function memory(report: CheckReport, options: TextOptions): string[] {
  const { estimate, budget, hardware } = report;
  if (!estimate) return [];
  const host = hardware.host ? ` of ${formatBytes(hardware.host.availableBytes)} available` : '';
  const { peakBytes, neededBytes } = estimate.ram;
  const mapped =
    peakBytes > neededBytes ? `; up to ${formatBytes(peakBytes)} with mapped files where there is room` : '';
  return [
    headed('memory', `one GPU at its peak, in the ${estimate.vram.peakPhase} phase`, options),
    ...renderMemoryBars(estimate, budget, options),
    wrap(
      `  host RAM ${formatBytes(estimate.ram.neededBytes)}${host}, all processes of a node${mapped}`,
      options.width,
      4,
    ),
  ];
}

/** Keys named for one reason; the JSON has all of them. */
const MAX_UNREAD = 40;

/** Reasons for which nobody misses a key. */
const QUIET: ReadonlySet<string> = new Set(['no-effect-on-memory', 'said-elsewhere']);

function unread({ reading }: CheckReport, options: TextOptions): string[] {
  const told = reading.unread.filter(({ reason }) => !QUIET.has(reason));
  const silent = reading.unread.filter(({ reason }) => reason === 'no-effect-on-memory').length;
  const lines = [...new Set(told.map(({ reason }) => reason))].map((reason) => {
    const keys = told.filter((entry) => entry.reason === reason);
    const named = keys.slice(0, MAX_UNREAD).map(({ key, origin }) => `${key} (${formatOrigin(origin)})`);
    const more = keys.length > named.length ? [`and ${keys.length - named.length} more`] : [];
    return `${reason.replaceAll('-', ' ')}: ${[...named, ...more].join(', ')}`;
  });
  if (silent > 0) lines.push(`${count(silent, 'key')} without effect on memory`);
  return lines.length > 0 ? [headed('unread', lines.join('\n'), options)] : [];
}

/** What the mode makes of a run that does not fit as it came; `rewrite` does what the verdict says. */
function modeLine({ plan, policy }: CheckReport, options: TextOptions): string[] {
  if (!plan || plan.verdict === 'fits' || !policy || policy.mode === 'rewrite') return [];
  const text =
    policy.mode === 'warn'
      ? 'mode warn: snug run starts it as it came and watches it'
      : plan.verdict === 'unknown'
        ? 'mode refuse: snug run starts nothing that cannot be estimated'
        : 'mode refuse: snug run starts nothing that does not fit as it came';
  return [wrap(text, options.width, 2)];
}

const verdict = (report: CheckReport, options: TextOptions): string[] => [
  ...planVerdict(report, options),
  ...modeLine(report, options),
];

/** The time of all changes together, where more than one of them takes some. */
function timeText({ changes, stepFactor }: Pick<Alternative, 'changes' | 'stepFactor'>): string {
  const slower = new Set(changes.filter(({ cost }) => cost.includes('×')).map(({ lever }) => lever));
  return slower.size < 2 ? '' : `, about ${stepFactor.toFixed(stepFactor < 1.095 ? 2 : 1)} × the step time in all`;
}

/** Other ways, each with its changes. */
const alternatives = (others: readonly Alternative[], options: TextOptions): string[] =>
  others.flatMap((plan, index) => [
    wrap(
      `${paint(options, 'bold', `or ${index + 1}`)}: ${formatBytes(plan.estimate.vram.devicePeakBytes)}${timeText(plan)}`,
      options.width,
      2,
    ),
    ...renderChanges(plan.changes, { distributed: plan.values.distributed, priced: true }, options),
  ]);

function planVerdict(report: CheckReport, options: TextOptions): string[] {
  const { plan, budget } = report;
  if (!plan) return [];
  const room = budget ? ` of ${formatBytes(budget.usableBytes)} usable` : '';
  switch (plan.verdict) {
    case 'fits':
      return [
        `${paint(options, ['bold', 'green'], 'fits')}: ${formatBytes(plan.estimate.vram.devicePeakBytes)}${room}`,
      ];
    case 'rewrite': {
      const before = formatBytes(plan.before.vram.devicePeakBytes);
      const after = formatBytes(plan.estimate.vram.devicePeakBytes);
      return [
        wrap(
          `${paint(options, ['bold', 'yellow'], 'fits after a rewrite')}: ${before} -> ${after}${room}`,
          options.width,
          2,
        ),
        ...renderChanges(plan.changes, { distributed: plan.values.distributed, priced: true }, options),
        wrap(`  then ${peaksText(plan.estimate)}${timeText(plan)}`, options.width, 4),
        ...alternatives(plan.alternatives ?? [], options),
      ];
    }
    case 'refuse':
      return [renderDiagnostic(refusalDiagnostic(report, plan), options)];
    case 'unknown':
      return [renderDiagnostic(plan.reason, options)];
    default:
      return assertNever(plan);
  }
}

/**
 * What a preflight found: the launch as understood, the memory as bars, the verdict with its changes, assumptions and messages.
 * Quiet: errors only, and nothing at all when there are none. No line break at the end.
 */
export function renderCheck(report: CheckReport, options: CheckTextOptions): string {
  const said = new Set([report.plan?.verdict === 'unknown' ? report.plan.reason : undefined]);
  const messages = report.diagnostics.filter(
    (diagnostic) =>
      !said.has(diagnostic) &&
      !(report.plan?.verdict === 'refuse' && diagnostic.code === 'does-not-fit') &&
      (!options.quiet || diagnostic.severity === 'error'),
  );
  const rendered = messages.map((diagnostic) => renderDiagnostic(diagnostic, options));
  if (options.quiet) {
    const { plan, policy } = report;
    const failed =
      plan?.verdict === 'refuse' ||
      plan?.verdict === 'unknown' ||
      (plan?.verdict === 'rewrite' && policy?.mode === 'refuse');
    return [...rendered, ...(failed ? verdict(report, options) : [])].join('\n');
  }
  const assumptions = report.estimate?.assumptions ?? [];
  const blocks = [
    [...understood(report, options), ...machine(report, options)],
    settings(report, options),
    memory(report, options),
    [
      ...(assumptions.length > 0 ? [headed('assumed', assumptions.join('\n'), options)] : []),
      ...unread(report, options),
    ],
    rendered,
    verdict(report, options),
    byHand(report, options),
  ];
  const text = blocks.filter((block) => block.length > 0).map((block) => block.join('\n'));
  return maskSecrets(plainSigns(options, text.join('\n\n')));
}

/** What belongs into a script that is not replaced by a copy, as it is to be written there. */
function byHand({ fitted, plan }: CheckReport, options: TextOptions): string[] {
  const told = plan?.verdict === 'rewrite' ? fitted?.byHand : undefined;
  if (!told) return [];
  return [wrap(`to be written at ${told.place}, since ${told.reason}:`, options.width, 2), told.command];
}

/** The peaks of a launch without a verdict: what was understood, the memory as bars, what was assumed. */
export function renderEstimate(report: CheckReport, options: TextOptions): string {
  const assumptions = report.estimate?.assumptions ?? [];
  const blocks = [
    understood(report, options),
    memory(report, options),
    assumptions.length > 0 ? [headed('assumed', assumptions.join('\n'), options)] : [],
  ];
  const text = blocks.filter((block) => block.length > 0).map((block) => block.join('\n'));
  return maskSecrets(plainSigns(options, text.join('\n\n')));
}
