import { type Diagnostic, error } from '../../core/index.ts';
import { type SettingName, settingKey, type TrainingSpec } from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import { didYouMean } from '../did-you-mean.ts';
import { flagText } from '../hf-argparser/values.ts';

/** `{per_device_train_batch_size}`, `{lora.r}`; a JSON object in a command has quotes and never looks like this. */
const PLACEHOLDER = /\{([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)?)\}/g;

/** Names of config keys where they differ from the setting's own. */
const KEYS: Readonly<Partial<Record<SettingName, string>>> = { modelNameOrPath: 'model' };
export const nativeKey = (setting: SettingName): string => KEYS[setting] ?? settingKey(setting);

/** Settings a command may ask for, by placeholder name. */
const SETTINGS: ReadonlyMap<string, SettingName> = new Map(
  (
    [
      'modelNameOrPath',
      'method',
      'objective',
      'dtype',
      'mixedPrecision',
      'perDeviceTrainBatchSize',
      'perDeviceEvalBatchSize',
      'eval',
      'gradientAccumulationSteps',
      'maxLength',
      'maxTargetLength',
      'packing',
      'paddingFree',
      'attentionMask',
      'attnImplementation',
      'gradientCheckpointing',
      'optim',
      'maxGradNorm',
      'quantization',
      'lora',
      'ia3',
      'distributed',
      'dataloaderNumWorkers',
      'dataloaderPinMemory',
      'lossImpl',
      'outputDir',
      'saveTotalLimit',
    ] satisfies SettingName[]
  ).map((setting) => [nativeKey(setting), setting]),
);

/** What a placeholder stands for: a setting, or one part of a setting that has parts. */
interface Meaning {
  readonly setting: SettingName;
  /** camelCase name of the part. */
  readonly part?: string;
}

function meaningOf(name: string): Meaning | undefined {
  const [key, part] = name.split('.') as [string, string?];
  const setting = SETTINGS.get(key);
  if (!setting) return undefined;
  if (part !== undefined) return { setting, part: camel(part) };
  // The bare name of the switch is the switch itself.
  return setting === 'gradientCheckpointing' ? { setting, part: 'enabled' } : { setting };
}

const camel = (key: string): string => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase());

/** A native command with its gaps. */
export interface CommandTemplate {
  readonly tokens: readonly string[];
  /** `setting` or `setting.part`, for every placeholder in it. */
  readonly has: ReadonlySet<string>;
}

/** Finds the placeholders; one that no setting stands behind is an error. `location` is where the command stands. */
export function readTemplate(
  tokens: readonly string[],
  location: string,
): { readonly template: CommandTemplate; readonly problems: readonly Diagnostic[] } {
  const has = new Set<string>();
  const problems: Diagnostic[] = [];
  for (const name of tokens.flatMap((token) => [...token.matchAll(PLACEHOLDER)].map((match) => match[1]!))) {
    const meaning = meaningOf(name);
    if (meaning) has.add(meaning.part ? `${meaning.setting}.${meaning.part}` : meaning.setting);
    else {
      const help = name === 'checkpoint' ? 'put it into resume:' : didYouMean(name, [...SETTINGS.keys()]);
      problems.push(error('unknown-placeholder', `{${name}} in the command is no setting`, { location, help }));
    }
  }
  return { template: { tokens, has }, problems };
}

/** The command with every gap filled; names what has no value. */
export function fillTemplate(
  { tokens }: CommandTemplate,
  spec: TrainingSpec,
  changed: ReadonlyMap<SettingName, unknown>,
): { readonly argv: readonly string[]; readonly missing: readonly string[] } {
  const missing = new Set<string>();
  const argv = tokens.map((token) =>
    token.replace(PLACEHOLDER, (whole, name: string) => {
      const meaning = meaningOf(name);
      if (!meaning) return whole;
      const value = changed.has(meaning.setting) ? changed.get(meaning.setting) : spec[meaning.setting]?.value;
      // What is off as a whole (no quantization) has no parts either: `none` for each of them.
      const part = meaning.part === undefined || value === null ? value : partOf(value, meaning.part);
      if (part === undefined) missing.add(name);
      return fill(part);
    }),
  );
  return { argv, missing: [...missing] };
}

const partOf = (value: unknown, part: string): unknown => (value as Record<string, unknown> | undefined)?.[part];

/** Lists as commas, absent quantization and the like as `none`. */
const fill = (value: unknown): string =>
  Array.isArray(value) ? value.join(',') : flagText((value ?? null) as FileValue);

/** The placeholder that is missing for a change; undefined: the command can be told. */
export function missingPlaceholder(
  { has }: CommandTemplate,
  setting: SettingName,
  from: unknown,
  to: unknown,
): string | undefined {
  if (has.has(setting)) return undefined;
  const key = nativeKey(setting);
  if (!isMap(to)) return `{${key}}`;
  const before = isMap(from) ? from : undefined;
  // Where there was nothing before, one part has to tell the trainer that there is something now.
  const parts = Object.keys(to).filter((part) => JSON.stringify(before?.[part]) !== JSON.stringify(to[part]));
  const told = parts.filter((part) => has.has(`${setting}.${part}`));
  if (before === undefined) return told.length > 0 ? undefined : `{${key}.${snake(Object.keys(to)[0]!)}}`;
  const untold = parts.find((part) => !told.includes(part));
  if (untold === undefined) return undefined;
  return untold === 'enabled' ? `{${key}}` : `{${key}.${snake(untold)}}`;
}

const snake = (name: string): string => settingKey(name);
const isMap = (value: unknown): value is Record<string, unknown> =>
  value !== null && typeof value === 'object' && !Array.isArray(value);
