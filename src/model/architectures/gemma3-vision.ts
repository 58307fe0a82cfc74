import type { Architecture } from './architecture.ts';
import { once, parameter, rmsNorm } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { describeTower } from './vision/towers.ts';

export const gemma3Vision: Architecture = {
  modelTypes: ['gemma3'],
  source: 'transformers 5.17 models/gemma3/modeling_gemma3.py',
  describe: (config) => {
    const tower = describeTower(config, 'model.vision_tower', 'siglip_vision_model', {});
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'gemma3_text' });
    return insideVision(text.description, {
      idle: [
        ...tower.modules,
        once('model.multi_modal_projector', [
          parameter('mm_input_projection_weight', tower.hiddenSize * text.description.hiddenSize),
          rmsNorm('mm_soft_emb_norm', tower.hiddenSize),
        ]),
      ],
      image: {
        patches: tower.patches,
        tokens: config.count('mm_tokens_per_image', 256),
        pixels: `${tower.side} × ${tower.side}`,
      },
      tied: config.flag('tie_word_embeddings', true),
      bufferBytes: tower.bufferBytes,
    });
  },
};
