import { error, fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileValue, Position, Written } from '../dialect.ts';
import { type FlatConfig, readFlatConfig } from '../flat-config.ts';
import { layerValues, type Values } from '../hf-argparser/values.ts';
import { cannot, wrote } from '../hf-argparser/written.ts';
import type { AxolotlStart } from './detect.ts';
import { type AxolotlOptions, scanAxolotl, switchToken } from './options.ts';

export interface AxolotlArguments {
  readonly values: Values;
  readonly config: FlatConfig;
  readonly options: AxolotlOptions;
}

/** The config file, and options of the command that win over it. Source: axolotl/cli/config.py `load_cfg`. */
export function readArguments(start: AxolotlStart, { argv }: Position, context: ReadContext): Result<AxolotlArguments> {
  const options = scanAxolotl(argv, start.argsFrom, start.form);
  const at = options.config;
  if (at === undefined) {
    return fail(
      error('no-config', 'axolotl is given no config', {
        location: `argv[${start.claim.from}]`,
        help: 'axolotl train config.yaml',
      }),
    );
  }
  const path = argv[at]!;
  if (/^https?:\/\//.test(path)) {
    return fail(
      error('remote-config', 'a config that axolotl downloads is not read here', {
        location: path,
        help: 'download it and name the file',
      }),
    );
  }
  const config = readFlatConfig(path, { kind: 'argv', index: at, before: '' }, context);
  if (!config.ok) return config;
  // `strict: true`: options count only for keys that the file has.
  const strict = config.value.keys.get('strict')?.value === true;
  const flags = options.flags.filter((flag) => !strict || config.value.keys.has(flag.key));
  const layered = layerValues({ argv, flags, appendAt: at + 1, file: config.value });
  return ok({ values: withSwitches(layered, start), config: config.value, options });
}

/** Writes switches in click's spelling; a key without a value (`adapter:`) is as good as absent. */
function withSwitches(values: Values, { form }: AxolotlStart): Values {
  const assign = (key: string, value: FileValue, aliases: readonly string[] = []): Written => {
    const found = values.find(key, ...aliases);
    if (found?.place.kind !== 'flag') return values.assign(key, value, aliases);
    const { flag } = found.place;
    const token = switchToken(flag, value, form);
    if (token !== undefined) return wrote({ kind: 'token', index: flag.index, text: token });
    if (value === null) return cannot(`${flag.spelling} would have to be taken out of the command`);
    if (value !== null && typeof value === 'object') return cannot(`${flag.spelling} stands in the command`);
    return values.assign(key, value, aliases);
  };
  const find: Values['find'] = (...keys) => {
    const found = keys.map((key) => values.find(key)).find((each) => each !== undefined && each.raw !== null);
    return found ?? undefined;
  };
  return { ...values, find, assign };
}
