import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import {
  attention,
  call,
  embedTokens,
  gatedMlp,
  heads,
  hiddenNorm,
  linear,
  noPeftDefaults,
  preNormLayer,
  rotary,
  split,
} from './parts.ts';

export const internlm2: Architecture = {
  modelTypes: ['internlm2'],
  source: 'the code published with internlm/internlm2-7b',
  ownCode: true,
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 11008,
      layers: 32,
      heads: 32,
      vocab: 103168,
    });
    const { hiddenSize, shape } = keys;
    const bias = config.flag('bias', true);
    const q = shape.heads * shape.headDim;
    const kv = shape.kvHeads * shape.headDim;
    const states = ['query_states', 'key_states', 'value_states'];
    const block = call(
      'attention',
      { hidden_states: 'hidden_states' },
      { attn_output: 'hidden_states', attn_weights: '_' },
      [
        linear('wqkv', 'hidden_states', 'qkv_states', hiddenSize, q + 2 * kv, bias),
        split(
          'qkv_states',
          [
            ['query_states', q],
            ['key_states', kv],
            ['value_states', kv],
          ],
          'slices',
        ),
        ...states.map((state) => heads(state, state)),
        rotary(shape),
        attention(shape),
        linear('wo', 'attn_output', 'attn_output', q, hiddenSize, bias),
      ],
    );
    const names = { gate: 'w1', up: 'w3', down: 'w2' };
    return {
      ...llamaLine(keys, {
        kinds: [
          preNormLayer(
            { norm: hiddenNorm('attention_norm', hiddenSize), block },
            {
              norm: hiddenNorm('ffn_norm', hiddenSize),
              block: gatedMlp(hiddenSize, keys.intermediateSize, keys.activation, false, 'feed_forward', names),
            },
          ),
        ],
        tied: config.flag('tie_word_embeddings', false),
        peft: noPeftDefaults,
      }),
      embedding: embedTokens('tok_embeddings', keys.vocabSize, hiddenSize),
      head: {
        name: 'output',
        bias: false,
        tied: config.flag('tie_word_embeddings', false),
        scaled: false,
        softcap: false,
      },
    };
  },
};

export const internlm3: Architecture = {
  modelTypes: ['internlm3'],
  source: 'the code published with internlm/internlm3-8b-instruct',
  ownCode: true,
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 11008,
      layers: 32,
      heads: 32,
      kvHeads: 32,
      vocab: 128512,
    });
    const bias = config.flag('bias', false);
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, { qkvBias: config.flag('qkv_bias', false), outputBias: bias }, bias)],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
