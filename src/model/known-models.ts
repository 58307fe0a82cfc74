import bloom from './known-models/bloom.json' with { type: 'json' };
import deepseek from './known-models/deepseek.json' with { type: 'json' };
import falcon from './known-models/falcon.json' with { type: 'json' };
import gemma from './known-models/gemma.json' with { type: 'json' };
import gpt from './known-models/gpt.json' with { type: 'json' };
import gptOss from './known-models/gpt-oss.json' with { type: 'json' };
import granite from './known-models/granite.json' with { type: 'json' };
import llama from './known-models/llama.json' with { type: 'json' };
import llamaLikes from './known-models/llama-likes.json' with { type: 'json' };
import mistral from './known-models/mistral.json' with { type: 'json' };
import mpt from './known-models/mpt.json' with { type: 'json' };
import olmo from './known-models/olmo.json' with { type: 'json' };
import opt from './known-models/opt.json' with { type: 'json' };
import phi from './known-models/phi.json' with { type: 'json' };
import pythia from './known-models/pythia.json' with { type: 'json' };
import qwen15 from './known-models/qwen1.5.json' with { type: 'json' };
import qwen2 from './known-models/qwen2.json' with { type: 'json' };
import qwen3 from './known-models/qwen3.json' with { type: 'json' };
import smollm from './known-models/smollm.json' with { type: 'json' };
import stablelm from './known-models/stablelm.json' with { type: 'json' };
import starcoder from './known-models/starcoder.json' with { type: 'json' };

/** A model that ships with snug: the parts of its config.json that shape memory, checked by scripts/check-known-models.py. */
export interface KnownModel {
  /** Id on the Hub, as published. */
  readonly id: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Published parameter count, tied weights once. */
  readonly parameters: number;
}

/** Models with the same config share an entry; `like` starts from an earlier entry of the same file. */
interface Entry {
  readonly names: readonly string[];
  readonly parameters?: number;
  readonly like?: string;
  readonly config: Readonly<Record<string, unknown>>;
}
interface Group {
  readonly defaults: Readonly<Record<string, unknown>>;
  readonly models: readonly Entry[];
}

const FAMILIES: readonly (readonly Group[])[] = [
  bloom,
  deepseek,
  falcon,
  gemma,
  gpt,
  gptOss,
  granite,
  llama,
  llamaLikes,
  mistral,
  mpt,
  olmo,
  opt,
  phi,
  pythia,
  qwen15,
  qwen2,
  qwen3,
  smollm,
  stablelm,
  starcoder,
];

function readFamily(groups: readonly Group[]): KnownModel[] {
  const known = new Map<string, KnownModel>();
  for (const { defaults, models } of groups) {
    for (const { names, parameters, like, config } of models) {
      const base = like === undefined ? undefined : known.get(like);
      const count = parameters ?? base?.parameters;
      if ((like !== undefined && !base) || count === undefined) throw new Error(`entry ${names[0]} is incomplete`);
      for (const id of names) {
        known.set(id, { id, config: { ...(base?.config ?? defaults), ...config }, parameters: count });
      }
    }
  }
  return [...known.values()];
}

/** Every known model. The Hub finds an id in any capitalisation, so the key is lower case. */
const byId: ReadonlyMap<string, KnownModel> = new Map(
  FAMILIES.flatMap(readFamily).map((model) => [model.id.toLowerCase(), model]),
);

export const knownModels: readonly KnownModel[] = [...byId.values()];

/** What bitsandbytes writes into config.json of a checkpoint that Unsloth stored in 4 bits. */
const STORED_IN_4_BITS = {
  quant_method: 'bitsandbytes',
  load_in_4bit: true,
  bnb_4bit_quant_type: 'nf4',
  bnb_4bit_use_double_quant: true,
  bnb_4bit_compute_dtype: 'bfloat16',
};

/** `unsloth/X-bnb-4bit` is `unsloth/X` stored in 4 bits; `-unsloth-bnb-4bit` leaves a few layers in 16 bits. */
function findStoredIn4Bits(id: string): KnownModel | undefined {
  const plain = /^(unsloth\/.+?)(?:-unsloth)?-bnb-4bit$/i.exec(id)?.[1]?.toLowerCase();
  const base = plain === undefined ? undefined : byId.get(plain);
  return base && { ...base, id, config: { ...base.config, quantization_config: STORED_IN_4_BITS } };
}

/** Organisations on ModelScope that hold copies of other makers' models under the same names. */
const COPIES = /^(?:LLM-Research|AI-ModelScope|modelscope)\//i;

/** Of several that share a name the first, which is its maker's. */
const byNameAlone: ReadonlyMap<string, KnownModel> = new Map(
  [...knownModels].reverse().map((model) => [model.id.split('/').at(-1)!.toLowerCase(), model]),
);

/** Looks a model id up in the table that ships with snug; ids are those of the Hub, ModelScope's copies included. */
export function findKnownModel(id: string): KnownModel | undefined {
  const copied = COPIES.test(id) ? byNameAlone.get(id.replace(COPIES, '').toLowerCase()) : undefined;
  return byId.get(id.toLowerCase()) ?? findStoredIn4Bits(id) ?? (copied && { ...copied, id });
}

/** `-8B`, `-0.5b`, `-135M` somewhere in a name: only such a one tells a model without its maker. */
const TELLS_SIZE = /[-_]\d+(?:\.\d+)?[bm](?![a-z])/i;

/** The known model that a folder is named after: `Llama-3.2-1B-Instruct`. */
export const findNamesake = (folder: string): KnownModel | undefined =>
  TELLS_SIZE.test(folder) ? byNameAlone.get(folder.toLowerCase()) : undefined;
