import type { Architecture } from './architecture.ts';
import { dense, once } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { describeTower, imageOf } from './vision/towers.ts';

export const paligemma: Architecture = {
  modelTypes: ['paligemma'],
  source: 'transformers 5.17 models/paligemma/modeling_paligemma.py',
  describe: (config) => {
    const tower = describeTower(config, 'model.vision_tower', 'siglip_vision_model', {
      intermediate_size: 4096,
      hidden_size: 1152,
      patch_size: 14,
      image_size: 224,
      num_hidden_layers: 27,
      num_attention_heads: 16,
      vision_use_head: false,
    });
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, {
      modelType: 'gemma',
      defaults: {
        hidden_size: 2048,
        num_hidden_layers: 18,
        intermediate_size: 16384,
        num_attention_heads: 8,
        num_key_value_heads: 1,
        vocab_size: config.count('vocab_size', 257152),
      },
    });
    return insideVision(text.description, {
      idle: [
        ...tower.modules,
        once('model.multi_modal_projector', [dense('linear', tower.hiddenSize, config.count('projection_dim', 2048))]),
      ],
      image: imageOf(tower),
      tied: config.flag('tie_word_embeddings', true),
      bufferBytes: tower.bufferBytes,
    });
  },
};
