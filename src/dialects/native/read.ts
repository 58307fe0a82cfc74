import { type Diagnostic, error, fail, ok, type Result } from '../../core/index.ts';
import type { Origin, TrainingSpec, TrainingValues } from '../../spec/index.ts';
import type { LaunchInternals, LaunchReading, LaunchSource, ReadContext, ResumeSupport } from '../contract.ts';
import type { StackView } from '../dialect.ts';
import { readLaunch } from '../read-launch.ts';
import { splitCommand } from '../split-command.ts';
import { editSetting, writableIn } from '../write-setting.ts';
import { readYaml, type YamlFile } from '../yaml-read.ts';
import { fillTemplate, readTemplate } from './placeholders.ts';
import { nativeProblems } from './problems.ts';
import { type NativeValues, nativeSchema } from './schema.ts';
import { nativeSpec } from './spec.ts';
import { alwaysNative, editNative, type NativeCommand } from './write.ts';

/** Policy keys of a native config; what is absent is left to the policy files and flags. */
export interface NativePolicy {
  readonly mode?: 'rewrite' | 'refuse' | 'warn';
  /** Classes and single levers, as written: which levers there are is the planner's knowledge. */
  readonly allow?: readonly string[];
  readonly forbid?: readonly string[];
  /** Settings that stay as they are, as written. */
  readonly keep?: readonly string[];
  readonly maxRetries?: number;
  readonly headroom?: number;
  /** `file:line` of the keys that name things. */
  readonly places?: Readonly<Partial<Record<'allow' | 'forbid' | 'keep', string>>>;
}

/** The policy of a parsed config; `placeOf` gives `file:line` of a key in it. */
export function policyFrom(policy: NativeValues['policy'], placeOf: (key: string) => string | undefined): NativePolicy {
  const { max_retries: maxRetries, ...rest } = policy ?? {};
  const said = Object.entries({ ...rest, maxRetries }).filter(([, value]) => value !== undefined);
  const named = (['allow', 'forbid', 'keep'] as const).filter((key) => rest[key] !== undefined);
  const places = named.flatMap((key) => {
    const place = placeOf(key);
    return place === undefined ? [] : [[key, place]];
  });
  return {
    ...(Object.fromEntries(said) as NativePolicy),
    ...(places.length > 0 ? { places: Object.fromEntries(places) } : {}),
  };
}

/** A `snug.yaml` as read. */
export interface NativeConfig {
  readonly reading: LaunchReading;
  readonly policy: NativePolicy;
  /** Whether it has a `command`, without which it can be checked but not run. */
  readonly hasCommand: boolean;
}

/** Reads a native config and the command in it. Errors carry `file:line`, for every problem at once. */
export function readNativeConfig(path: string, context: ReadContext): Result<NativeConfig> {
  const source = context.source(path);
  if (!source.ok) return source;
  const yaml = readYaml(source.value.text, path);
  if (!yaml.ok) return yaml;
  const parsed = parseFile(yaml.value, path);
  if (!parsed.ok) return parsed;
  const values = parsed.value;
  const originOf = (key: string): Origin | undefined => {
    const entry = yaml.value.get(key);
    return entry && { kind: 'file', path, line: entry.line };
  };
  const command = readCommand(values, source.value, originOf, context);
  if (!command.ok) return command;
  return ok({
    reading: command.value,
    policy: policyFrom(values.policy, (key) => {
      const entry = yaml.value.get('policy', key);
      return entry && `${path}:${entry.line}`;
    }),
    hasCommand: values.command !== undefined,
  });
}

function parseFile(yaml: YamlFile, path: string): Result<NativeValues> {
  const locate = (keyPath: readonly string[]): string => {
    for (let depth = keyPath.length; depth > 0; depth -= 1) {
      const entry = yaml.get(...keyPath.slice(0, depth));
      if (entry) return `${path}:${entry.line}`;
    }
    return path;
  };
  const value: Record<string, unknown> = Object.fromEntries(
    yaml.entries.filter((entry) => entry.keyPath.length === 1).map((entry) => [entry.keyPath[0]!, entry.value]),
  );
  const hazards = yaml.entries.flatMap((entry): Diagnostic[] =>
    entry.hazards.includes('duplicate')
      ? [
          error('duplicate-key', `${entry.keyPath.join('.')} stands there twice`, {
            location: `${path}:${entry.line}`,
            help: 'keep one of them',
          }),
        ]
      : [],
  );
  const parsed = nativeSchema().safeParse(value);
  const problems = [...hazards, ...(parsed.success ? [] : nativeProblems(parsed.error.issues, value, locate))];
  return problems.length > 0 || !parsed.success ? fail(...problems) : ok(parsed.data);
}

/** The command with its gaps filled, read as any launch: it starts the processes and may know how to resume. */
function readCommand(
  values: NativeValues,
  source: LaunchSource,
  originOf: (key: string) => Origin | undefined,
  context: ReadContext,
): Result<LaunchReading> {
  const { path } = source;
  const line = (key: string): string => {
    const origin = originOf(key);
    return origin?.kind === 'file' ? `${path}:${origin.line}` : path;
  };
  if (values.command === undefined) return ok(withoutCommand(path, nativeSpec(values, originOf, undefined)));
  const tokens = splitCommand(values.command, line('command'));
  const resume = values.resume === undefined ? undefined : splitCommand(values.resume, line('resume'));
  const problems = [...(tokens.ok ? [] : tokens.error), ...(resume && !resume.ok ? resume.error : [])];
  if (resume?.ok && !resume.value.some((token) => token.includes('{checkpoint}'))) {
    problems.push(
      error('no-checkpoint', 'resume: does not say where the checkpoint goes', {
        location: line('resume'),
        help: 'write {checkpoint} in it',
      }),
    );
  }
  if (!tokens.ok || (resume && !resume.ok) || problems.length > 0) return fail(...problems);
  const read = readTemplate(tokens.value, line('command'));
  const filled = fillTemplate(read.template, nativeSpec(values, originOf, undefined), new Map());
  const gaps = filled.missing.map((name) =>
    error('missing-value', `the command has {${name}}, and the config gives it no value`, {
      location: line('command'),
      help: `add ${name.split('.')[0]}:`,
    }),
  );
  if (read.problems.length + gaps.length > 0) return fail(...read.problems, ...gaps);
  const inner = readLaunch(filled.argv, context);
  if (!inner.ok) return inner;
  const command: NativeCommand = { template: read.template, resume: resume?.ok ? resume.value : undefined };
  return ok(foldCommand(values, source, originOf, command, inner.value));
}

function foldCommand(
  values: NativeValues,
  source: LaunchSource,
  originOf: (key: string) => Origin | undefined,
  command: NativeCommand,
  inner: LaunchReading,
): LaunchReading {
  // A program or wrapper that nothing is known of leaves the word to the config.
  const started = inner.internals!.view.layers.some(({ dialect, reading: { processes, sharding } }) =>
    processes && (dialect.kind !== 'wrapper' || processes.perNode !== null) ? true : sharding !== undefined,
  );
  const spec: TrainingSpec = {
    ...nativeSpec(values, originOf, started ? inner.spec.distributed : undefined),
    ...(inner.spec.allocatorConf ? { allocatorConf: inner.spec.allocatorConf } : {}),
    ...(values.output_dir === undefined && inner.spec.outputDir?.origin.kind === 'argv'
      ? { outputDir: inner.spec.outputDir }
      : {}),
  };
  const view: StackView = { ...inner.internals!.view, spec };
  const internals: LaunchInternals = {
    view,
    environment: inner.internals!.environment,
    edit: (setting, to, wanted) =>
      setting === 'allocatorConf'
        ? editSetting(view, inner.internals!.environment, setting, to)
        : (editNative(command, spec, setting, to) ?? inner.internals!.edit(setting, to, wanted)),
    always: (changed) => alwaysNative(command, spec, changed, view.argv),
  };
  const resume: ResumeSupport = command.resume
    ? { kind: 'supported', how: values.resume! }
    : inner.resume.kind === 'supported'
      ? inner.resume
      : { kind: 'unsupported', reason: 'the config has no resume: for its trainer' };
  const launchers = inner.stack.filter((entry) => entry.kind === 'launcher');
  const engines = inner.stack.filter((entry) => entry.kind === 'engine');
  return {
    ...inner,
    stack: [...launchers, { dialect: 'native', kind: 'trainer' }, ...engines],
    files: [source.path, ...inner.files],
    spec,
    unread: [],
    // What the command's own trainer says of its settings does not hold beside a config that gives them.
    diagnostics: inner.diagnostics.filter(
      ({ severity, code }) =>
        severity === 'error' || (code === 'unknown-processes' && spec.distributed?.value === null),
    ),
    resume,
    writable: writableIn(internals),
    internals,
  };
}

function withoutCommand(path: string, spec: TrainingSpec): LaunchReading {
  return {
    command: { argv: [] },
    env: {},
    wrappers: [],
    stack: [{ dialect: 'native', kind: 'trainer' }],
    files: [path],
    spec,
    unread: [],
    diagnostics: [],
    programIndex: 0,
    python: undefined,
    resume: { kind: 'unsupported', reason: 'the config has no command' },
    writable: () => true,
  };
}

/** One native config as a value, without a command to start: a line of `snug estimate --plans`. */
export function parseNativePlan(value: unknown): Result<{
  readonly id: string;
  readonly spec: TrainingSpec;
  readonly modelNameOrPath?: string;
  readonly modelConfig?: TrainingValues['modelConfig'];
}> {
  const parsed = nativeSchema().safeParse(value);
  if (!parsed.success) return fail(...nativeProblems(parsed.error.issues, value, () => undefined));
  const values = parsed.data;
  if (values.id === undefined) {
    return fail(error('bad-value', 'the plan has no id', { help: 'give each plan an id of its own' }));
  }
  const id = String(values.id);
  const given = new Set(Object.keys(value as Record<string, unknown>));
  const origin: Origin = { kind: 'derived', from: `plan ${id}` };
  const spec = nativeSpec(values, (key) => (given.has(key) ? origin : undefined), undefined);
  return ok({
    id,
    spec,
    ...(values.model === undefined ? {} : { modelNameOrPath: values.model }),
    ...(values.model_config === undefined ? {} : { modelConfig: values.model_config }),
  });
}
