import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { call, embedTokens, gatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

/** EXAONE 3 and 3.5: Llama's layers under GPT's names. */
export const exaone: Architecture = {
  modelTypes: ['exaone'],
  source: 'the code published with LGAI-EXAONE/EXAONE-3.5-7.8B-Instruct',
  ownCode: true,
  describe: (config) => {
    const read = readLlamaKeys(config, {
      hidden: 2048,
      intermediate: 8192,
      layers: 32,
      heads: 32,
      vocab: 102400,
      activationKeys: ['activation_function', 'hidden_act'],
    });
    const keys = { ...read, layers: config.count(['num_layers', 'num_hidden_layers'], 32) };
    const { hiddenSize, vocabSize } = keys;
    const inside = selfAttention(keys.shape, { outputName: 'out_proj' }, 'attention');
    const block = call('attn', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [inside]);
    const names = { gate: 'c_fc_0', up: 'c_fc_1', down: 'c_proj' };
    return {
      ...llamaLine(keys, {
        kinds: [
          preNormLayer(
            { norm: hiddenNorm('ln_1', hiddenSize), block },
            {
              norm: hiddenNorm('ln_2', hiddenSize),
              block: gatedMlp(hiddenSize, keys.intermediateSize, keys.activation, false, 'mlp', names),
            },
          ),
        ],
        tied: config.flag('tie_word_embeddings', false),
        peft: noPeftDefaults,
      }),
      layersPath: 'transformer.h',
      embedding: embedTokens('wte', vocabSize, hiddenSize),
      final: [hiddenNorm('ln_f', hiddenSize)],
    };
  },
};
