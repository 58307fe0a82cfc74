import type { Origin, Setting, TrainingSpec } from '../../spec/index.ts';
import type { ReadContext } from '../contract.ts';
import { orNull, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { readYaml } from '../yaml-read.ts';

/** Makers of the models that litgpt knows by a name alone. Source: litgpt/config.py `hf_config`. */
const MAKERS: readonly (readonly [RegExp, string])[] = [
  [/^(?:Meta-)?Llama-/i, 'meta-llama'],
  [/^pythia-/i, 'EleutherAI'],
  [/^phi-/i, 'microsoft'],
  [/^(?:code)?gemma-/i, 'google'],
  [/^(?:Code)?Qwen|^QwQ/i, 'Qwen'],
  [/^(?:Mistral|Mixtral)-/i, 'mistralai'],
  [/^SmolLM/i, 'HuggingFaceTB'],
  [/^falcon-/i, 'tiiuae'],
  [/^(?:stablelm|stable-code)-/i, 'stabilityai'],
  [/^CodeLlama-/i, 'codellama'],
  [/^OLMo-/i, 'allenai'],
  [/^starcoder/i, 'bigcode'],
];

const withMaker = (name: string): string => {
  if (name.includes('/')) return name;
  if (/^tiny-llama-1\.1b-chat$/i.test(name)) return 'TinyLlama/TinyLlama-1.1B-Chat-v1.0';
  if (/^tiny-llama-1\.1b$/i.test(name)) return 'TinyLlama/TinyLlama-1.1B-intermediate-step-1431k-3T';
  const maker = MAKERS.find(([pattern]) => pattern.test(name))?.[1];
  return maker === undefined ? name : `${maker}/${name}`;
};

/**
 * `checkpoints/org/name`, or `org/name` below it. A converted folder says in model_config.yaml which model of the Hub it was
 * made from, and may lack the config.json that came with it.
 */
export function readModel(reader: SettingReader, context: ReadContext): TrainingSpec {
  reader.note('model_config', 'tokenizer_dir');
  const given = reader.given(['checkpoint_dir', 'initial_checkpoint_dir'], orNull(toText));
  const name = reader.given(['model_name'], orNull(toText));
  if (given?.value) {
    const folder = given.value.replace(/\/+$/, '');
    return { modelNameOrPath: ofFolder(folder, given.origin, context) };
  }
  return name?.value ? { modelNameOrPath: { value: withMaker(name.value), origin: name.origin } } : {};
}

function ofFolder(folder: string, origin: Origin, context: ReadContext): Setting<string> {
  const candidates =
    folder.startsWith('/') || folder.startsWith('checkpoints/') ? [folder] : [folder, `checkpoints/${folder}`];
  const has = (path: string, file: string): boolean =>
    context.files.info(`${path.startsWith('/') ? '' : `${context.cwd}/`}${path}/${file}`)?.kind === 'file';
  for (const path of candidates) {
    if (has(path, 'config.json')) return { value: path, origin };
    if (!has(path, 'model_config.yaml')) continue;
    const source = context.source(`${path}/model_config.yaml`);
    const yaml = source.ok ? readYaml(source.value.text, source.value.path) : undefined;
    const org = yaml?.ok ? yaml.value.get('hf_config', 'org')?.value : undefined;
    const entry = yaml?.ok ? yaml.value.get('hf_config', 'name') : undefined;
    if (typeof org !== 'string' || typeof entry?.value !== 'string') continue;
    return {
      value: `${org}/${entry.value}`,
      origin: { kind: 'file', path: `${path}/model_config.yaml`, line: entry.line },
    };
  }
  return { value: folder, origin };
}
