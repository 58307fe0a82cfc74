import { describeModel, type ModelFacts } from '../src/model/index.ts';
import { findKnownModel } from '../src/model/known-models.ts';

type Config = Readonly<Record<string, unknown>>;

/** Checkpoints of one shape under other names: quantised copies, and shapes that only have a preset name. */
const SAME_SHAPE: Readonly<Record<string, string>> = {
  'TheBloke/Mistral-7B-v0.1-GPTQ': 'mistralai/Mistral-7B-v0.1',
  'TheBloke/Mixtral-8x7B-Instruct-v0.1-GPTQ': 'mistralai/Mixtral-8x7B-Instruct-v0.1',
  'TheBloke/Llama-2-70B-GPTQ': 'meta-llama/Llama-2-70b-hf',
  'TechxGenus/Meta-Llama-3-8B-GPTQ': 'meta-llama/Meta-Llama-3-8B',
  'OpenBuddy/openbuddy-zephyr-7b-v14.1': 'mistralai/Mistral-7B-v0.1',
  'Qwen/Qwen2.5-7B-Instruct-AWQ': 'Qwen/Qwen2.5-7B-Instruct',
  'ByteDance-Seed/Seed-OSS-36B-Instruct': 'seed-oss-36b',
  'bigcode/gpt_bigcode-santacoder': 'santacoder',
};

const qwen1 = (hidden: number, layers: number, heads: number, intermediate: number, vocab: number): Config => ({
  model_type: 'qwen',
  hidden_size: hidden,
  num_hidden_layers: layers,
  num_attention_heads: heads,
  intermediate_size: intermediate,
  vocab_size: vocab,
  kv_channels: 128,
  no_bias: true,
  tie_word_embeddings: false,
  bf16: true,
});

/** Published shapes that the table of known models does not hold. */
const SHAPES: Readonly<Record<string, Config>> = {
  'qwen-1_8b': qwen1(2048, 24, 16, 11008, 151936),
  'qwen-7b': qwen1(4096, 32, 32, 22016, 151936),
  'qwen-14b': qwen1(5120, 40, 40, 27392, 152064),
  'qwen-72b': qwen1(8192, 80, 64, 49152, 152064),
  'seed-oss-36b': {
    model_type: 'seed_oss',
    hidden_size: 5120,
    intermediate_size: 27648,
    num_hidden_layers: 64,
    num_attention_heads: 80,
    num_key_value_heads: 8,
    head_dim: 128,
    vocab_size: 155136,
    attention_bias: true,
    attention_out_bias: false,
    tie_word_embeddings: false,
  },
  santacoder: {
    model_type: 'gpt_bigcode',
    n_embd: 2048,
    n_layer: 24,
    n_head: 16,
    n_inner: 8192,
    n_positions: 2048,
    vocab_size: 49280,
    multi_query: true,
    activation_function: 'gelu_pytorch_tanh',
    attn_pdrop: 0.1,
    embd_pdrop: 0.1,
    resid_pdrop: 0.1,
  },
};

const known = new Map<string, ModelFacts | string>();

/** Shape of a row's model, or why there is none. */
export function factsOf(id: string, source: string): ModelFacts | string {
  // LitGPT has modules of its own.
  const own = /litgpt/i.test(source);
  const found = known.get(`${own} ${id}`);
  if (found !== undefined) return found;
  const described = describe(id, own);
  known.set(`${own} ${id}`, described);
  return described;
}

/** A head of its own, and torch's gelu. */
const asLitGpt = (config: Config): Config => ({
  ...config,
  tie_word_embeddings: false,
  ...(config.hidden_act === 'gelu_new' ? { hidden_act: 'gelu_pytorch_tanh' } : {}),
});

function describe(id: string, own: boolean): ModelFacts | string {
  const name = SAME_SHAPE[id] ?? id;
  const qwen = /^Qwen\/(Qwen-[\d_]+B)/i.exec(name)?.[1]?.toLowerCase();
  const config = SHAPES[qwen ?? name] ?? findKnownModel(name)?.config;
  if (!config) return `the config of ${id} is not at hand`;
  const facts = describeModel(own ? asLitGpt(config) : config);
  return facts.ok ? facts.value : facts.error[0]!.message;
}
