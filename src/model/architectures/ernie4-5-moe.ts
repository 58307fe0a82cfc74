import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import {
  add,
  call,
  gatedMlp,
  hiddenNorm,
  moe,
  noPeftDefaults,
  PROJECTION_NAMES,
  preNormLayer,
  type SelfAttentionOptions,
  selfAttention,
} from './parts.ts';

export const ernie45Moe: Architecture = {
  modelTypes: ['ernie4_5_moe'],
  source: 'transformers 5.17 models/ernie4_5_moe/modeling_ernie4_5_moe.py',
  describe: (config) => {
    const read = readLlamaKeys(config, {
      hidden: 2560,
      intermediate: 12288,
      layers: 28,
      heads: 20,
      kvHeads: 4,
      vocab: 103424,
    });
    const keys = { ...read, shape: { ...read.shape, dropout: 0 } };
    const bias = config.flag('use_bias', false);
    const options: SelfAttentionOptions = {
      qkvBias: bias,
      outputBias: bias,
      rotaryForm: { pairs: true, wide: 'inside', tables: 'repeated' },
    };
    const moeSize = config.count('moe_intermediate_size', 1536);
    const shared = config.whole('moe_num_shared_experts', 2);
    const sparse = moe({
      name: '',
      router: 'gate',
      hiddenSize: keys.hiddenSize,
      intermediateSize: moeSize,
      experts: config.count(['moe_num_experts', 'num_experts'], 64),
      expertsPerToken: config.count(['moe_k', 'num_experts_per_tok'], 6),
      normalise: true,
      routing: { form: 'corrected_softmax' },
      targetNames: PROJECTION_NAMES,
      castWeights: true,
      activation: keys.activation,
      output: 'final_hidden_states',
    });
    const beside: readonly Op[] =
      shared === 0
        ? []
        : [
            {
              ...gatedMlp(keys.hiddenSize, moeSize * shared, keys.activation, bias, 'shared_experts'),
              results: { down_proj: 'shared_output' },
            },
          ];
    const block = call('mlp', { hidden_states: 'hidden_states' }, { final_hidden_states: 'hidden_states' }, [
      ...beside,
      sparse,
      ...(shared === 0 ? [] : [add('final_hidden_states', 'shared_output', 'final_hidden_states')]),
    ]);
    const layers = keys.layers;
    const [start, interval] = [config.whole('moe_layer_start_index', 1), config.count('moe_layer_interval', 1)];
    const end = config.number('moe_layer_end_index', -1);
    const last = end === -1 ? layers - 1 : end;
    return llamaLine(keys, {
      kinds: [
        preNormLayer(
          { norm: hiddenNorm('input_layernorm', keys.hiddenSize), block: selfAttention(keys.shape, options) },
          { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
        ),
        llamaLayer(keys, options, bias),
      ],
      order: Array.from({ length: layers }, (_, index) =>
        (index + 1) % interval === 0 && index >= start && index <= last ? 0 : 1,
      ),
      tied: config.flag('tie_word_embeddings', true),
      headBias: bias,
      peft: noPeftDefaults,
    });
  },
};
