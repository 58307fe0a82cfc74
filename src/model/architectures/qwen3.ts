import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { peftDefaults } from './parts.ts';

export const qwen3: Architecture = {
  modelTypes: ['qwen3'],
  source: 'transformers 5.17 models/qwen3/modeling_qwen3.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 22016,
      layers: 32,
      heads: 32,
      kvHeads: 32,
      vocab: 151936,
      headDim: 128,
    });
    const bias = config.flag('attention_bias', false);
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, { qkvBias: bias, outputBias: bias, headNorm: 'rms' })],
      tied: config.flag('tie_word_embeddings', false),
      masks: config.flag('use_sliding_window', false) ? 2 : 1,
      peft: peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'down_proj'], ['down_proj']),
    });
  },
};
