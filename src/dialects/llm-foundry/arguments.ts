import { error, fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileValue, Position } from '../dialect.ts';
import { type DottedConfig, dottedValues, readDottedConfig, yamlWord } from '../dotted-values.ts';
import type { Values } from '../hf-argparser/values.ts';
import type { FoundryStart } from './detect.ts';

export interface FoundryArguments {
  readonly values: Values;
  readonly config: DottedConfig;
}

/** The YAML file, then `key=value` words that win over it. Source: command_utils/train.py `train_from_yaml`. */
export function readArguments(start: FoundryStart, { argv }: Position, context: ReadContext): Result<FoundryArguments> {
  const path = argv[start.config];
  if (path === undefined) {
    return fail(
      error('no-config', 'LLM Foundry is given no config', {
        location: `argv[${start.claim.from}]`,
        help: 'composer train/train.py FILE.yaml',
      }),
    );
  }
  const config = readDottedConfig(path, { kind: 'argv', index: start.config, before: '' }, context);
  if (!config.ok) return config;
  const overrides = argv.slice(start.config + 1).map((token, offset) => {
    const equals = token.indexOf('=');
    const key = equals < 0 ? token : token.slice(0, equals);
    const value = equals < 0 ? null : yamlWord(token.slice(equals + 1));
    return { key, value, index: start.config + 1 + offset, before: `${key}=` };
  });
  const values = dottedValues({
    overrides,
    file: config.value,
    appendAt: argv.length,
    spell: (key, value) => [`${key}=${format(value)}`],
    format,
  });
  return ok({ values, config: config.value });
}

/** A value as OmegaConf reads it from a word. */
function format(value: FileValue): string | undefined {
  if (Array.isArray(value)) return `[${value.map(String).join(',')}]`;
  return value !== null && typeof value === 'object' ? undefined : String(value);
}
