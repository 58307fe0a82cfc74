import type { ConfigReader } from '../config-reader.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import {
  add,
  call,
  gatedMlp,
  hiddenNorm,
  linear,
  moe,
  noPeftDefaults,
  PROJECTION_NAMES,
  preNormLayer,
  selfAttention,
} from './parts.ts';

/** A number that may be said layer by layer, but has to be the same for all. */
function sameForAll(config: ConfigReader, key: string, fallback: number): number {
  const value = config.raw(key);
  if (!Array.isArray(value)) return config.count(key, fallback);
  const [first] = value as readonly unknown[];
  if (typeof first === 'number' && value.every((each) => each === first)) return first;
  config.refuse(`a HunYuan whose layers differ in ${key} is not described`);
  return fallback;
}

export const hunyuanMoe: Architecture = {
  modelTypes: ['hunyuan_v1_moe'],
  source: 'transformers 5.17 models/hunyuan_v1_moe/modeling_hunyuan_v1_moe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, { hidden: 4096, intermediate: 11008, layers: 32, heads: 32, vocab: 290943 });
    const bias = config.flag('attention_bias', false);
    const experts = sameForAll(config, 'num_experts', 1);
    const block = call('mlp', { hidden_states: 'hidden_states' }, { $summed: 'hidden_states' }, [
      {
        ...gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation, false, 'shared_mlp'),
        results: { down_proj: 'hidden_states_mlp' },
      },
      // The router's weight is fp32, and so is what it reads.
      call('gate', { hidden_states: 'hidden_states' }, { router_logits: 'router_logits' }, [
        { op: 'cast', like: 'fp32', input: 'hidden_states', output: 'hidden_states' },
        { ...linear('wg', 'hidden_states', 'router_logits', keys.hiddenSize, experts), wide: true },
      ]),
      moe({
        name: '',
        router: 'gate',
        logits: 'router_logits',
        output: 'final_hidden_states',
        hiddenSize: keys.hiddenSize,
        intermediateSize: keys.intermediateSize,
        experts,
        expertsPerToken: sameForAll(config, 'moe_topk', 1),
        normalise: true,
        targetNames: PROJECTION_NAMES,
        castWeights: true,
        activation: keys.activation,
      }),
      add('final_hidden_states', 'hidden_states_mlp', '$summed'),
    ]);
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          {
            norm: hiddenNorm('input_layernorm', keys.hiddenSize),
            block: selfAttention(keys.shape, {
              qkvBias: bias,
              outputBias: bias,
              headNorm: 'rms',
              headNormAfterRotary: true,
              headNormNames: ['query_layernorm', 'key_layernorm'],
            }),
          },
          { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
        ),
      ],
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
  },
};
