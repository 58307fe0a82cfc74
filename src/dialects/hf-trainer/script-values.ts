import type { FileValue } from '../dialect.ts';
import { lineAt } from '../json-text.ts';
import { type CallArgument, callsOf, readLiteral } from './python-literals.ts';
import type { ScriptFacts } from './script.ts';

/** A value that stands in the text of a script. */
export interface ScriptValue {
  /** undefined: something stands there that only running the script would tell. */
  readonly value: FileValue | undefined;
  readonly line: number;
  /** The default of a flag, which a flag beats; otherwise only the text itself can be changed. */
  readonly flag: boolean;
}

export interface ScriptValues {
  readonly path: string;
  readonly values: ReadonlyMap<string, ScriptValue>;
  /** Fields that the script fills from a flag of another name: `per_device_train_batch_size=args.batch` . */
  readonly aliases: ReadonlyMap<string, string>;
}

/** Ways in which a script reads its own command line. */
const PARSERS = ['ArgumentParser', 'HfArgumentParser', 'TrlParser', 'argv', 'click', 'fire', 'typer', 'hydra', 'tyro'];

/** Whether the script reads its command line itself; undefined: it cannot be read, or leaves everything to another file. */
export function parsesArguments(script: ScriptFacts): boolean | undefined {
  if (PARSERS.some((word) => script.mentions(word))) return true;
  return script.text !== undefined && callsOf(script.text, CONFIG_CALL).length > 0 ? false : undefined;
}

const CONFIG_CALL =
  '(?:Seq2Seq)?(?:TrainingArguments|SFTConfig|DPOConfig|GRPOConfig|KTOConfig|RewardConfig|RLOOConfig|ORPOConfig)';

/**
 * What a script says in its own text: the defaults of the flags that it declares, and the arguments of the one call that
 * sets up the run. Only values that stand there in full; of an expression it is only known that it is one.
 */
export function readScriptValues(script: ScriptFacts): ScriptValues | undefined {
  const { path, text } = script;
  if (path === undefined || text === undefined) return undefined;
  const parses = parsesArguments(script);
  if (parses === undefined) return undefined;
  const values = new Map<string, ScriptValue>();
  const aliases = new Map<string, string>();
  const declared = parses ? declaredFlags(text) : new Map<string, Located>();
  for (const [key, { value, at }] of declared) values.set(key, { value, line: lineAt(text, at), flag: true });
  // HfArgumentParser fills the config itself; anybody else fills it in a call.
  const called =
    script.mentions('HfArgumentParser') || script.mentions('TrlParser') ? undefined : calledWith(text, parses);
  for (const [key, { value, at, from }] of called ?? []) {
    if (from !== undefined && declared.has(from)) {
      if (from !== key) aliases.set(key, from);
    } else values.set(key, { value, line: lineAt(text, at), flag: false });
  }
  return { path, values, aliases };
}

interface Located {
  readonly value: FileValue | undefined;
  readonly at: number;
  /** `x` of `args.x`. */
  readonly from?: string;
}

/** `parser.add_argument("--x", default=3)` and dataclass fields (`x: int = 3`, `x: int = field(default=3)`). */
function declaredFlags(text: string): ReadonlyMap<string, Located> {
  const found = new Map<string, Located>();
  for (const call of callsOf(text, 'add_argument')) {
    const words = call.filter((argument) => argument.name === undefined).map((argument) => readLiteral(argument.text));
    const flag = words.find((each) => String(each).startsWith('--'));
    if (flag === undefined) continue;
    const given = call.find((argument) => argument.name === 'default');
    const at = given?.at ?? call[0]!.at;
    found.set(String(flag).replace(/^--/, '').replaceAll('-', '_'), { value: given && readLiteral(given.text), at });
  }
  for (const match of text.matchAll(/^[ \t]+(\w+)[ \t]*:[ \t]*[\w.[\], |"']+?[ \t]*=[ \t]*(.+)$/gm)) {
    const [whole, key, rest] = match as unknown as [string, string, string];
    const at = match.index + whole.indexOf(key);
    const inner = rest.startsWith('field') ? callsOf(text.slice(match.index), 'field')[0] : undefined;
    const given = inner ? inner.find((argument) => argument.name === 'default')?.text : rest.replace(/\s+#.*$/, '');
    const value = given === undefined ? undefined : readLiteral(given);
    if (value !== undefined && value !== null) found.set(key, { value, at });
  }
  return found;
}

/** PEFT's LoraConfig and bitsandbytes' config under the names that flags have for them; what is left out has its default there. */
const LORA = {
  r: 'lora_r',
  lora_alpha: 'lora_alpha',
  lora_dropout: 'lora_dropout',
  target_modules: 'lora_target_modules',
  modules_to_save: 'lora_modules_to_save',
};
const LORA_DEFAULTS: Readonly<Record<string, FileValue>> = { lora_r: 8, lora_alpha: 8, lora_dropout: 0 };
const QUANTIZATION = {
  load_in_4bit: 'load_in_4bit',
  load_in_8bit: 'load_in_8bit',
  bnb_4bit_quant_type: 'bnb_4bit_quant_type',
  bnb_4bit_use_double_quant: 'use_bnb_nested_quant',
  bnb_4bit_compute_dtype: 'bnb_4bit_compute_dtype',
};

function calledWith(text: string, parses: boolean): ReadonlyMap<string, Located> {
  const resolve = resolver(text);
  const found = new Map<string, Located>();
  const take = (calls: readonly (readonly CallArgument[])[], names?: Readonly<Record<string, string>>): void => {
    for (const argument of calls.flat()) {
      const key = argument.name && (names ? names[argument.name] : argument.name);
      const from = flagOf(argument.text);
      // Of several calls nobody knows which one sets up the run.
      const value = calls.length > 1 ? undefined : resolve(argument.text);
      if (key) found.set(key, { value, at: argument.at, ...(from && calls.length === 1 ? { from } : {}) });
    }
  };
  take(callsOf(text, CONFIG_CALL));
  const model = modelOf(text, resolve);
  if (model) found.set('model_name_or_path', model);
  // Where there are flags, one of them may decide whether these are used at all.
  if (parses) return found;
  take(callsOf(text, 'BitsAndBytesConfig'), QUANTIZATION);
  const lora = callsOf(text, 'LoraConfig');
  take(lora, LORA);
  if (lora.length === 1) {
    const at = lora[0]![0]?.at ?? text.indexOf('LoraConfig');
    found.set('use_peft', { value: true, at });
    for (const [key, value] of Object.entries(LORA_DEFAULTS)) if (!found.has(key)) found.set(key, { value, at });
  }
  return found;
}

/** The name of the one model that is loaded: by from_pretrained, or by the trainer itself. */
function modelOf(text: string, resolve: (text: string) => FileValue | undefined): Located | undefined {
  const loads = callsOf(text, '\\w*Model\\w*\\.from_pretrained').flatMap((call) => {
    const named = call.find((each) => each.name === 'pretrained_model_name_or_path') ?? call[0];
    return named ? [named] : [];
  });
  const trainers = callsOf(text, '\\w*Trainer').flatMap((call) => call.filter((each) => each.name === 'model'));
  const names = [...loads, ...trainers].flatMap((argument): Located[] => {
    const from = flagOf(argument.text);
    const value = resolve(argument.text);
    if (from !== undefined) return [{ value: undefined, at: argument.at, from }];
    return typeof value === 'string' ? [{ value, at: argument.at }] : [];
  });
  return new Set(names.map((name) => name.from ?? name.value)).size === 1 ? names[0] : undefined;
}

/** `batch` of `args.batch` and `parser.parse_args().batch`. */
const flagOf = (text: string): string | undefined => /^(?:\w+|\w+\.parse_args\(\))\.(\w+)$/.exec(text)?.[1];

/** Literals, and names that are given one literal in the whole text. */
function resolver(text: string): (argument: string) => FileValue | undefined {
  const assigned = new Map<string, FileValue | undefined>();
  for (const [, name, value] of text.matchAll(/^[ \t]*(\w+)[ \t]*=[ \t]*(.+?)[ \t]*(?:#.*)?$/gm)) {
    assigned.set(name!, assigned.has(name!) ? undefined : readLiteral(value!));
  }
  return (argument) => readLiteral(argument) ?? (/^\w+$/.test(argument) ? assigned.get(argument) : undefined);
}
