import type { Architecture } from './architecture.ts';
import { dense, once, rmsNorm } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { describeTower, imageOf } from './vision/towers.ts';

export const mistral3: Architecture = {
  modelTypes: ['mistral3'],
  source: 'transformers 5.17 models/mistral3/modeling_mistral3.py',
  describe: (config) => {
    const tower = describeTower(config, 'model.vision_tower', 'pixtral', {
      intermediate_size: 4096,
      hidden_size: 1024,
      patch_size: 14,
      image_size: 1540,
      num_hidden_layers: 24,
      num_attention_heads: 16,
    });
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, {
      modelType: 'mistral',
      defaults: {
        head_dim: 128,
        hidden_size: 5120,
        intermediate_size: 32768,
        num_attention_heads: 32,
        num_hidden_layers: 40,
        num_key_value_heads: 8,
        vocab_size: 131072,
        sliding_window: null,
      },
    });
    const { hiddenSize } = text.description;
    const size = tower.hiddenSize;
    const merge = config.count('spatial_merge_size', 2);
    const features = config.raw('vision_feature_layer');
    const bias = config.flag('multimodal_projector_bias', false);
    return insideVision(text.description, {
      idle: [
        ...tower.modules,
        once('model.multi_modal_projector', [
          rmsNorm('norm', size),
          dense('patch_merger.merging_layer', size * merge ** 2, size, false),
          dense('linear_1', size * (Array.isArray(features) ? features.length : 1), hiddenSize, bias),
          dense('linear_2', hiddenSize, hiddenSize, bias),
        ]),
      ],
      image: imageOf(tower, merge ** 2),
      tied: config.flag('tie_word_embeddings', true),
      bufferBytes: tower.bufferBytes,
    });
  },
};
