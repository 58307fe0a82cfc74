import { error } from '../../core/index.ts';
import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults } from './parts.ts';

export const smollm3: Architecture = {
  modelTypes: ['smollm3'],
  source: 'transformers 5.17 models/smollm3/modeling_smollm3.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 2048,
      intermediate: 11008,
      layers: 36,
      heads: 16,
      kvHeads: 4,
      vocab: 128256,
    });
    const bias = config.flag('attention_bias', false);
    const mlpBias = config.flag('mlp_bias', false);
    const options = { qkvBias: bias, outputBias: bias };
    const interval = config.count('no_rope_layer_interval', 4);
    const listed = config.raw('no_rope_layers');
    if (listed !== undefined && listed !== null && !(Array.isArray(listed) && listed.length >= keys.layers)) {
      config.problems.push(
        error('bad-model-config', `no_rope_layers of the model config must be a list of ${keys.layers} numbers`),
      );
    }
    // 1 in the list: this layer turns its heads.
    const turns = (index: number): boolean =>
      Array.isArray(listed) ? Boolean(listed[index]) : (index + 1) % interval !== 0;
    return llamaLine(keys, {
      kinds: [llamaLayer(keys, options, mlpBias), llamaLayer(keys, { ...options, rotary: false }, mlpBias)],
      order: Array.from({ length: keys.layers }, (_, index) => (turns(index) ? 0 : 1)),
      tied: config.flag('tie_word_embeddings', true),
      masks: config.flag('use_sliding_window', false) ? 2 : 1,
      peft: noPeftDefaults,
    });
  },
};
