import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { peftDefaults } from './parts.ts';

export const qwen2: Architecture = {
  modelTypes: ['qwen2'],
  source: 'transformers 5.17 models/qwen2/modeling_qwen2.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 22016,
      layers: 32,
      heads: 32,
      kvHeads: 32,
      vocab: 151936,
    });
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, { qkvBias: true })],
      tied: config.flag('tie_word_embeddings', false),
      masks: config.flag('use_sliding_window', false) ? 2 : 1,
      peft: peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'down_proj'], ['down_proj']),
    });
  },
};
