import { ConfigReader } from '../config-reader.ts';
import type { Architecture } from './architecture.ts';
import { dense, once } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { imageOf, siglip } from './vision/towers.ts';

export const idefics3: Architecture = {
  modelTypes: ['idefics3', 'smolvlm'],
  source: 'transformers 5.17 models/idefics3/modeling_idefics3.py, models/smolvlm/modeling_smolvlm.py',
  describe: (config) => {
    const vision = config.part('vision_config') ?? new ConfigReader({}, config);
    const tower = siglip(vision, 'model.vision_model', { inner: 3072, patch: 32, size: 1152, heads: false });
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'llama' });
    const scale = config.count('scale_factor', 2) ** 2;
    return insideVision(text.description, {
      idle: [
        ...tower.modules,
        once('model.connector.modality_projection', [
          dense('proj', tower.hiddenSize * scale, text.description.hiddenSize, false),
        ]),
      ],
      image: imageOf(tower, scale),
      tied: config.flag('tie_word_embeddings', false),
      bufferBytes: 0,
      name: 'text_model',
    });
  },
};
