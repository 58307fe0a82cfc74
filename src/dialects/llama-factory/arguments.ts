import { type Diagnostic, error, ok, type Result } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileValue, Written } from '../dialect.ts';
import { type FlatConfig, readFlatConfig } from '../flat-config.ts';
import { type Flag, type Grammar, parseFlags } from '../hf-argparser/grammar.ts';
import { layerValues, type Values } from '../hf-argparser/values.ts';
import { cannot, wrote } from '../hf-argparser/written.ts';
import { appendPlace, tokensFrom } from '../hf-trainer/arguments.ts';
import { LLAMA_FACTORY_FIELDS, LLAMA_FACTORY_NEGATABLE } from './fields.ts';

export interface LlamaFactoryArguments {
  readonly values: Values;
  readonly config?: FlatConfig;
  readonly diagnostics: readonly Diagnostic[];
}

const GRAMMAR: Grammar = { fields: LLAMA_FACTORY_FIELDS, negatable: LLAMA_FACTORY_NEGATABLE, open: false };

/**
 * A YAML or JSON file first, then `key=value` words that win over it; or flags alone. Source: hparams/parser.py `read_args`,
 * OmegaConf.from_cli.
 */
export function readArguments(
  argv: readonly string[],
  argsFrom: number,
  context: ReadContext,
): Result<LlamaFactoryArguments> {
  const path = argv[argsFrom];
  if (path === undefined || !/\.(?:ya?ml|json)$/.test(path)) return ok(flagForm(argv, argsFrom));
  const config = readFlatConfig(path, { kind: 'argv', index: argsFrom, before: '' }, context);
  if (!config.ok) return config;
  const flags = argv.slice(argsFrom + 1).map((token, offset) => assignment(token, argsFrom + 1 + offset));
  const values = layerValues({ argv, flags, appendAt: argsFrom + 1, file: config.value });
  return ok({ values: withNull(values, true), config: config.value, diagnostics: [] });
}

function flagForm(argv: readonly string[], argsFrom: number): LlamaFactoryArguments {
  const parsed = parseFlags(tokensFrom(argv, argsFrom), GRAMMAR);
  const values = layerValues({ argv, flags: parsed.flags, appendAt: appendPlace(parsed, argv) });
  return {
    values: withNull(values, false),
    diagnostics: parsed.problems.map((problem) =>
      error('bad-option', problem.message, { location: `argv[${problem.index}]`, help: problem.help }),
    ),
  };
}

/** `lora_rank=4`; a word without `=` sets a key to nothing. */
function assignment(token: string, index: number): Flag {
  const equals = token.indexOf('=');
  const key = equals < 0 ? token : token.slice(0, equals);
  const text = equals < 0 || equals === token.length - 1 ? 'null' : token.slice(equals + 1);
  return {
    key,
    known: LLAMA_FACTORY_FIELDS.has(key),
    spelling: key,
    index,
    style: 'equals',
    negated: false,
    values: [{ text, index }],
    end: index + 1,
  };
}

/** `null` is a word to OmegaConf and no value to argparse, which has no way to say nothing. */
function withNull(values: Values, omegaConf: boolean): Values {
  const assign = (key: string, value: FileValue, aliases: readonly string[] = []): Written => {
    const found = values.find(key, ...aliases);
    if (value !== null || found?.place.kind !== 'flag') return values.assign(key, value, aliases);
    const { flag } = found.place;
    return omegaConf
      ? wrote({ kind: 'token', index: flag.index, text: `${flag.key}=null` })
      : cannot(`${flag.spelling} would have to be taken out of the command`);
  };
  return { ...values, assign };
}
