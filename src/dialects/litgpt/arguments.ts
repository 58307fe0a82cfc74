import { error, fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileValue, Position } from '../dialect.ts';
import {
  type Builtin,
  type DottedConfig,
  dottedValues,
  type Override,
  readDottedConfig,
  yamlWord,
} from '../dotted-values.ts';
import type { Values } from '../hf-argparser/values.ts';
import { readLiteral } from '../hf-trainer/python-literals.ts';
import type { ScriptFacts } from '../hf-trainer/script.ts';
import type { LitgptStart } from './detect.ts';

export interface LitgptArguments {
  readonly values: Values;
  readonly config: DottedConfig | undefined;
}

/**
 * Options `--a.b value`, and `--config FILE` read where it stands: what comes after it wins, what came before does not. One
 * word without an option is the checkpoint (or, to pretrain, the name of the model). Source: jsonargparse's CLI.
 */
export function readArguments(start: LitgptStart, { argv }: Position, context: ReadContext): Result<LitgptArguments> {
  const positional = start.task === 'pretrain' ? 'model_name' : 'checkpoint_dir';
  const options: Override[] = [];
  let config: { readonly path: string; readonly index: number; readonly before: string } | undefined;
  for (let at = start.argsFrom; at < argv.length; at += 1) {
    const token = argv[at]!;
    if (!token.startsWith('--')) {
      options.push({ key: positional, value: token, index: at, before: '' });
      continue;
    }
    const equals = token.indexOf('=');
    const name = equals < 0 ? token.slice(2) : token.slice(2, equals);
    if (equals < 0) at += 1;
    const text = equals < 0 ? argv[at] : token.slice(equals + 1);
    if (text === undefined || (equals < 0 && /^--[a-z]/.test(text))) {
      return fail(
        error('bad-option', `--${name} needs a value`, {
          location: `argv[${equals < 0 ? at - 1 : at}]`,
          help: `write --${name} VALUE`,
        }),
      );
    }
    const before = equals < 0 ? '' : token.slice(0, equals + 1);
    if (name === 'config') {
      config = { path: text, index: at, before };
      // A whole config sets every key it has, so only those it lacks are left of what stood before.
      continue;
    }
    options.push({ key: name, value: yamlWord(text), index: at, before });
  }
  if (config && /^https?:\/\//.test(config.path)) {
    return fail(
      error('remote-config', 'a config that litgpt downloads is not read here', {
        location: config.path,
        help: 'download it and name the file',
      }),
    );
  }
  const file =
    config && readDottedConfig(config.path, { kind: 'argv', index: config.index, before: config.before }, context);
  if (file && !file.ok) return file;
  const keys = file?.ok ? file.value.keys : undefined;
  const overrides = options.filter(({ key, index }) => !config || index > config.index || !keys?.has(key));
  const builtin = start.script && scriptValues(start.script);
  const values = dottedValues({
    overrides,
    ...(file?.ok ? { file: file.value } : {}),
    ...(builtin ? { builtin } : {}),
    appendAt: argv.length,
    spell: (key, value) => [`--${key}`, format(value)!],
    format,
  });
  return ok({ values, config: file?.ok ? file.value : undefined });
}

/** As jsonargparse reads it: YAML, with lists and maps in JSON. */
function format(value: FileValue): string | undefined {
  return value !== null && typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** Names that scripts before 0.2 had at the top of their text, by the option of today. */
const CONSTANTS: Readonly<Record<string, string>> = {
  batch_size: 'train.global_batch_size',
  micro_batch_size: 'train.micro_batch_size',
  override_max_seq_length: 'train.max_seq_length',
  devices: 'devices',
  lora_r: 'lora_r',
  lora_alpha: 'lora_alpha',
  lora_dropout: 'lora_dropout',
  lora_query: 'lora_query',
  lora_key: 'lora_key',
  lora_value: 'lora_value',
  lora_projection: 'lora_projection',
  lora_mlp: 'lora_mlp',
  lora_head: 'lora_head',
};

/** Constants of an older script: `micro_batch_size = 4` at the beginning of a line. */
function scriptValues({ text, path }: ScriptFacts): ReadonlyMap<string, Builtin> {
  const values = new Map<string, Builtin>();
  for (const [at, line] of (text ?? '').split('\n').entries()) {
    const [, name, written] = /^(\w+)\s*=\s*([^=#]+?)\s*(?:#.*)?$/.exec(line) ?? [];
    const key = name === undefined ? undefined : CONSTANTS[name];
    const value = written === undefined ? undefined : readLiteral(written);
    if (key && value !== undefined) values.set(key, { value, origin: { kind: 'file', path: path!, line: at + 1 } });
  }
  return values;
}
