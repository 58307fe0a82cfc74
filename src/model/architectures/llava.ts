import type { Architecture } from './architecture.ts';
import { dense, once, parameter } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { describeTower, imageOf } from './vision/towers.ts';

/** What transformers takes for a LLaVA without `vision_config`. */
export const CLIP_LARGE = {
  intermediate_size: 4096,
  hidden_size: 1024,
  patch_size: 14,
  image_size: 336,
  num_hidden_layers: 24,
  num_attention_heads: 16,
};

export const llava: Architecture = {
  modelTypes: ['llava', 'llava_next'],
  source: 'transformers 5.17 models/llava/modeling_llava.py, models/llava_next/modeling_llava_next.py',
  describe: (config, modelType) => {
    const tower = describeTower(config, 'model.vision_tower', 'clip_vision_model', CLIP_LARGE);
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'llama' });
    const { hiddenSize } = text.description;
    const features = config.raw('vision_feature_layer');
    const bias = config.flag('multimodal_projector_bias', true);
    const joined = tower.hiddenSize * (Array.isArray(features) ? features.length : 1);
    return insideVision(text.description, {
      idle: [
        ...tower.modules,
        once('model.multi_modal_projector', [
          dense('linear_1', joined, hiddenSize, bias),
          dense('linear_2', hiddenSize, hiddenSize, bias),
        ]),
        ...(modelType === 'llava_next' ? [once('model', [parameter('image_newline', hiddenSize)])] : []),
      ],
      image: imageOf(tower),
      tied: config.flag('tie_word_embeddings', false) || text.description.head.tied,
      bufferBytes: tower.bufferBytes,
    });
  },
};
