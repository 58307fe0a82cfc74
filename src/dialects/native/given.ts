import { type Diagnostic, error, fail, ok, type Result } from '../../core/index.ts';
import { type SettingName, settingKey, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import { readYaml } from '../yaml-read.ts';
import { nativeProblems } from './problems.ts';
import { type NativePolicy, policyFrom } from './read.ts';
import { nativeSchema } from './schema.ts';
import { nativeSpec } from './spec.ts';

/** Keys of the native config that are no settings of a run. */
const NOT_SETTINGS = ['id', 'command', 'resume', 'policy', 'model', 'model_config'];

/**
 * Settings given on snug's own command line, `max_length=2048`, in the words of the native config; only what is given is in
 * the result. Errors name every assignment that is wrong.
 */
export function parseGivenSettings(assignments: readonly string[]): Result<TrainingSpec> {
  if (assignments.length === 0) return ok({});
  const pairs = assignments.map((text) => /^([a-z][a-z0-9_]*)=(.*)$/s.exec(text.trim()));
  const wrong = assignments.filter((_, index) => !pairs[index]);
  if (wrong.length > 0) {
    return fail(
      ...wrong.map((text) =>
        error('bad-setting', `--set ${text} is no assignment`, { help: 'write --set max_length=2048' }),
      ),
    );
  }
  const given: Record<string, unknown> = {};
  const problems: Diagnostic[] = [];
  for (const [, key, value] of pairs as RegExpExecArray[]) {
    const yaml = readYaml(`${key}: ${value}`, '--set');
    if (!yaml.ok) problems.push(...yaml.error);
    else given[key!] = yaml.value.get(key!)?.value;
  }
  const parsed = nativeSchema().safeParse(given);
  if (!parsed.success)
    problems.push(...nativeProblems(parsed.error.issues, given, (path) => `--set ${path.join('.')}`).map(spelledOut));
  const stranger = Object.keys(given).find((key) => NOT_SETTINGS.includes(key));
  if (stranger)
    problems.push(
      error('bad-setting', `${stranger} cannot be given with --set`, {
        help: 'use --model for the model, and a snug.yaml for the rest',
      }),
    );
  if (problems.length > 0 || !parsed.success) return fail(...problems);
  const spec = nativeSpec(
    parsed.data,
    (key) => (key in given ? { kind: 'derived', from: `--set ${key}` } : undefined),
    undefined,
  );
  const named = Object.entries(spec).filter(([name]) => settingKey(name as SettingName) in given);
  return ok(Object.fromEntries(named) as TrainingSpec);
}

/** A setting of several parts is written as YAML writes it on one line. */
function spelledOut(problem: Diagnostic): Diagnostic {
  const name = /^--set (\w+)$/.exec(problem.location ?? '')?.[1];
  const parts = name === undefined ? undefined : PARTS[name];
  return parts && / expected a map of keys$/.test(problem.message)
    ? { ...problem, help: `write --set '${name}={ ${parts} }'` }
    : problem;
}

const PARTS: Readonly<Record<string, string>> = {
  distributed: 'processes_per_node: 2, strategy: zero2',
  lora: 'r: 16, lora_alpha: 32, target_modules: all-linear',
  quantization: 'bits: 4, quant_type: nf4',
};

/** A policy file: the keys of `policy:` in a native config, at its top level. Absent is no error: undefined. */
export function readPolicyFile(
  path: string,
  context: Pick<ReadContext, 'source' | 'files'>,
): Result<NativePolicy | undefined> {
  if (!context.files.info(path)) return ok(undefined);
  const source = context.source(path);
  if (!source.ok) return source;
  const yaml = readYaml(source.value.text, path);
  if (!yaml.ok) return yaml;
  const value = Object.fromEntries(
    yaml.value.entries.filter((entry) => entry.keyPath.length === 1).map((entry) => [entry.keyPath[0]!, entry.value]),
  );
  const parsed = nativeSchema().safeParse({ policy: value });
  if (!parsed.success) {
    return fail(
      ...nativeProblems(parsed.error.issues, { policy: value }, (keys) => {
        const entry = yaml.value.get(...keys.slice(1));
        return entry ? `${path}:${entry.line}` : path;
      }),
    );
  }
  const placeOf = (key: string): string | undefined => {
    const entry = yaml.value.get(key);
    return entry && `${path}:${entry.line}`;
  };
  return ok(policyFrom(parsed.data.policy, placeOf));
}
