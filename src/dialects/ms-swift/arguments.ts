import { type Diagnostic, error, ok, type Result } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileValue, Position } from '../dialect.ts';
import { type FlatConfig, readFlatConfig } from '../flat-config.ts';
import { parseFlags } from '../hf-argparser/grammar.ts';
import { layerValues, type Values } from '../hf-argparser/values.ts';
import { appendPlace, tokensFrom } from '../hf-trainer/arguments.ts';
import type { SwiftStart } from './detect.ts';
import { SWIFT_FIELDS } from './fields.ts';

export interface SwiftArguments {
  readonly values: Values;
  readonly config: FlatConfig | undefined;
  /** The config's `ENV:` map, as far as the environment does not say otherwise. */
  readonly env: Readonly<Record<string, string>>;
  readonly diagnostics: readonly Diagnostic[];
}

/** A YAML or JSON file as the first word (or, in release 3, after `--config`), then flags that win over it. Source: swift/cli/main.py. */
export function readArguments(
  start: SwiftStart,
  { argv, environment }: Position,
  context: ReadContext,
): Result<SwiftArguments> {
  const first = argv[start.argsFrom] ?? '';
  const flag = argv.findIndex((token, index) => index >= start.argsFrom && token === '--config');
  const at = /\.(?:ya?ml|json)$/.test(first) ? start.argsFrom : flag >= 0 ? flag + 1 : undefined;
  const path = at === undefined ? undefined : argv[at];
  const config =
    path === undefined ? undefined : readFlatConfig(path, { kind: 'argv', index: at!, before: '' }, context);
  if (config && !config.ok) return config;
  const skipped = new Set(at === undefined ? [] : flag >= 0 && at === flag + 1 ? [flag, at] : [at]);
  const tokens = tokensFrom(argv, start.argsFrom).filter((token) => !skipped.has(token.index));
  const parsed = parseFlags(tokens, { fields: SWIFT_FIELDS, negatable: new Set(), open: false });
  const file = config?.ok ? config.value : undefined;
  const values = layerValues({
    argv,
    flags: parsed.flags,
    appendAt: parsed.flags.length > 0 ? appendPlace(parsed, argv) : argv.length,
    ...(file ? { file } : {}),
  });
  const map = file?.keys.get('ENV')?.value;
  const variables =
    map !== null && typeof map === 'object' && !Array.isArray(map) ? (map as Record<string, FileValue>) : {};
  const env = Object.fromEntries(
    Object.entries(variables).flatMap(([name, value]) =>
      environment[name] === undefined ? [[name, String(value)]] : [],
    ),
  );
  return ok({
    values,
    config: file,
    env,
    diagnostics: parsed.problems.map((problem) =>
      error('bad-option', problem.message, { location: `argv[${problem.index}]`, help: problem.help }),
    ),
  });
}
