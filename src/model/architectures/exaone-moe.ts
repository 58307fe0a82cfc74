import type { Architecture } from './architecture.ts';
import { exaoneWindows } from './exaone4.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { gatedMlp, hiddenNorm, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';
import { denseFirst, readSharedExperts } from './shared-experts.ts';

/** EXAONE 4's attention in layers that norm before their blocks, and DeepSeek V3's experts. */
export const exaoneMoe: Architecture = {
  modelTypes: ['exaone_moe'],
  source: 'transformers 5.17 models/exaone_moe/modeling_exaone_moe.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 16384,
      layers: 32,
      heads: 32,
      kvHeads: 32,
      vocab: 102400,
    });
    const blocks = [
      readSharedExperts(config, keys, { size: 1024, experts: 64, chosen: 8, shared: 1, groups: 1, normalise: true }),
      gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation),
    ];
    const { turns, slides } = exaoneWindows(config, keys.layers);
    const dense = denseFirst(config, keys.layers, 1);
    return llamaLine(keys, {
      kinds: [true, false].flatMap((rotary) =>
        blocks.map((block) =>
          preNormLayer(
            {
              norm: hiddenNorm('input_layernorm', keys.hiddenSize),
              block: selfAttention(keys.shape, { headNorm: 'rms', headNormAfterHeads: true, rotary }),
            },
            { norm: hiddenNorm('post_attention_layernorm', keys.hiddenSize), block },
          ),
        ),
      ),
      order: turns.map((turned, index) => (turned ? 0 : 2) + dense[index]!),
      tied: config.flag('tie_word_embeddings', false),
      masks: slides ? 2 : 1,
      peft: noPeftDefaults,
    });
  },
};
