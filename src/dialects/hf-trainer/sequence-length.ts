import type { Diagnostic } from '../../core/index.ts';
import type { Objective, Setting } from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import { orNull, toInteger, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { parseJson } from '../json-text.ts';
import type { ScriptFacts } from './script.ts';

/** Origin of a row that is as long as the tokenizer, or else the model, allows. */
export const BLOCK_SIZE_ORIGIN = 'tokenizer model_max_length';

/** Flags that say how many tokens a row has, most specific first. */
export const LENGTH_KEYS = [
  'max_length',
  'max_seq_length',
  'block_size',
  'model_max_length',
  'cutoff_len',
  'max_seq_len',
  'seq_length',
  'sequence_length',
];
/** Prompt and answer: their sum is the row, unless encoder and decoder read one each. */
const PAIRS = [
  ['source_max_len', 'target_max_len'],
  ['max_source_length', 'max_target_length'],
] as const;

/** Tokens a row. Without a flag only a run_clm script's own rule is known; elsewhere the length is unknown. */
export function readMaxLength(
  reader: SettingReader,
  script: ScriptFacts,
  context: ReadContext,
  objective: Objective | null,
): {
  readonly setting: Setting<number>;
  readonly target?: Setting<number>;
  readonly diagnostics: readonly Diagnostic[];
} {
  if (objective === 'seq2seq') {
    for (const pair of PAIRS) {
      const [source, target] = pair.map((key) => reader.given([key], toInteger(1)));
      if (source) {
        const setting = { value: source.value, origin: source.origin };
        return target
          ? { setting, target: { value: target.value, origin: target.origin }, diagnostics: [] }
          : { setting, diagnostics: [] };
      }
    }
  }
  const length = reader.given(LENGTH_KEYS, orNull(toInteger(1)));
  if (length?.value) return { setting: { value: length.value, origin: length.origin }, diagnostics: [] };
  for (const pair of PAIRS) {
    const [source, target] = pair.map((key) => reader.given([key], toInteger(1)));
    if (source && target) {
      return { setting: { value: source.value + target.value, origin: source.origin }, diagnostics: [] };
    }
  }
  const name = script.path?.split('/').at(-1) ?? '';
  if (/^run_clm(?:_no_trainer)?\.py$/.test(name) || script.mentions('group_texts')) {
    return { setting: blockSize(reader, context), diagnostics: [] };
  }
  const from = script.path ?? 'the script';
  return { setting: { value: null, origin: { kind: 'derived', from } }, diagnostics: [] };
}

/**
 * run_clm.py without --block_size: the tokenizer's model_max_length, or min(1024, max_position_embeddings) where that is
 * larger than the positions. Source: transformers examples/pytorch/language-modeling/run_clm.py.
 */
function blockSize(reader: SettingReader, context: ReadContext): Setting<number> {
  const model = reader.given(['model_name_or_path', 'tokenizer_name'], toText)?.value;
  const unknown: Setting<number> = { value: null, origin: { kind: 'derived', from: BLOCK_SIZE_ORIGIN } };
  if (model === undefined) return unknown;
  const folder = modelFolder(model, context);
  if (folder === undefined) return unknown;
  const tokenizer = number(folder, 'tokenizer_config.json', ['model_max_length'], context);
  const positions = number(folder, 'config.json', ['max_position_embeddings', 'n_positions', 'n_ctx'], context);
  if (positions === undefined) return unknown;
  // A tokenizer without a limit says 1e30, and one without the file falls back to the same.
  const value = tokenizer !== undefined && tokenizer <= positions ? tokenizer : Math.min(1024, positions);
  return { value, origin: { kind: 'derived', from: `${model} tokenizer_config.json` } };
}

/** The model's folder, or its newest snapshot in the Hub cache of this machine. */
function modelFolder(model: string, context: ReadContext): string | undefined {
  const own = model.startsWith('/') ? model : `${context.cwd}/${model}`;
  if (context.files.info(own)?.kind === 'folder') return own;
  const { environment } = context;
  const home = environment.HF_HOME ?? `${environment.XDG_CACHE_HOME ?? `${context.homeDir}/.cache`}/huggingface`;
  const hub = environment.HF_HUB_CACHE ?? `${home}/hub`;
  const snapshots = `${hub}/models--${model.replaceAll('/', '--')}/snapshots`;
  const newest = context.files
    .list(snapshots)
    .map((name) => `${snapshots}/${name}`)
    .sort((a, b) => (context.files.info(a)?.modifiedMs ?? 0) - (context.files.info(b)?.modifiedMs ?? 0))
    .at(-1);
  return newest;
}

function number(folder: string, file: string, keys: readonly string[], context: ReadContext): number | undefined {
  const text = context.files.readText(`${folder}/${file}`);
  const node = text.ok ? parseJson(text.value, file) : undefined;
  if (!node?.ok) return undefined;
  const value = node.value.members?.findLast((member) => keys.includes(member.key))?.node.value;
  return typeof value === 'number' && value > 0 ? value : undefined;
}
