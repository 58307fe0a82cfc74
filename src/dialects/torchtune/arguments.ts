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
import { builtinConfig } from './builtin-configs.ts';

export interface TorchtuneArguments {
  readonly values: Values;
  readonly overrides: readonly Override[];
  /** undefined: a config that comes with torchtune. */
  readonly config: DottedConfig | undefined;
  /** Where a new word of the command goes. */
  readonly appendAt: number;
}

/**
 * `--config NAME_OR_FILE`, then `key=value` that wins over it, `~key` that takes a key out. Source: torchtune/_cli/run.py,
 * config/_parse.py, config/_utils.py of 0.6.1.
 */
export function readArguments(argsFrom: number, { argv }: Position, context: ReadContext): Result<TorchtuneArguments> {
  const at = argv.findIndex((token, index) => index >= argsFrom && /^--config(?:=|$)/.test(token));
  const whole = at >= 0 && argv[at] !== '--config';
  const index = whole ? at : at + 1;
  const before = whole ? '--config=' : '';
  const name = at < 0 ? undefined : argv[index]?.slice(before.length);
  if (name === undefined || whole) {
    const message = whole ? 'tune run takes the config as a word of its own' : 'tune run is given no config';
    return fail(
      error('no-config', message, {
        location: `argv[${Math.max(at, argsFrom - 1)}]`,
        help: 'tune run lora_finetune_single_device --config my.yaml',
      }),
    );
  }
  const builtin = builtinConfig(name);
  const config = builtin ? undefined : readDottedConfig(name, { kind: 'argv', index, before }, context);
  if (config && !config.ok) return fail(...config.error.map((each) => noBuiltin(each, name)));
  const words = argv.slice(argsFrom).map((text, offset) => ({ text, index: argsFrom + offset }));
  const given = words.filter((word) => word.index !== at && word.index !== index);
  const wrong = given.find(({ text }) => /^--/.test(text) || (!text.startsWith('~') && text.split('=').length !== 2));
  if (wrong) {
    return fail(
      error('bad-option', `${wrong.text} is not of the form key=value, which is all a recipe takes`, {
        location: `argv[${wrong.index}]`,
        help: 'write key=value, or ~key to take a key out',
      }),
    );
  }
  const removed = given.filter(({ text }) => text.startsWith('~')).map(({ text }) => text.slice(1).split('=')[0]!);
  const file = config?.ok ? config.value : undefined;
  const overrides = given
    .filter(({ text }) => !text.startsWith('~'))
    .map((word) => override(word.text, word.index, file, builtin));
  const appendAt = argv.length;
  const values = dottedValues({
    overrides,
    ...(file ? { file } : {}),
    ...(builtin ? { builtin } : {}),
    removed,
    appendAt,
    spell: (key, value) => [`${key}=${format(value)}`],
    format,
  });
  return ok({ values, overrides, config: file, appendAt });
}

/** `tune run` takes a name without an ending for one of its own configs. */
const noBuiltin = <D extends { readonly help?: string }>(each: D, name: string): D =>
  /\.ya?ml$/.test(name) ? each : { ...each, help: `copy the config with tune cp ${name} my.yaml and name the copy` };

/** `model=builder` where the config has a component there stands for `model._component_=builder`. */
function override(
  text: string,
  index: number,
  file: DottedConfig | undefined,
  builtin: ReadonlyMap<string, Builtin> | undefined,
): Override {
  const equals = text.indexOf('=');
  const name = text.slice(0, equals);
  const word = text.slice(equals + 1);
  const component = `${name}._component_`;
  const key = file?.keys.has(component) || builtin?.has(component) ? component : name;
  return { key, value: word === 'None' ? null : yamlWord(word), index, before: `${name}=` };
}

/** As OmegaConf reads it from a word; a second `=` would stop the recipe. */
function format(value: FileValue): string | undefined {
  if (Array.isArray(value)) {
    const items = value.map((item) => format(item as FileValue));
    return items.some((item) => item === undefined || /[,[\]]/.test(item)) ? undefined : `[${items.join(',')}]`;
  }
  if (value === null) return 'null';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (typeof value === 'object') return undefined;
  const text = String(value);
  return /[=\n]/.test(text) ? undefined : text;
}
