import { ConfigReader } from '../config-reader.ts';
import type { IdleModules } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dense, layerNorm, once, parameter, patches } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { towerLayers } from './vision/tower-layers.ts';

const PATH = 'model.vision_tower';

function tower(config: ConfigReader, size: number, count: number): readonly IdleModules[] {
  const form = config.word('norm_type', 'layer_norm', ['layer_norm', 'rms_norm']) === 'rms_norm' ? 'rms' : 'layer';
  const patch = config.side('patch_size', 14);
  return [
    once(PATH, [
      parameter('embeddings.cls_token', size),
      ...(config.flag('use_mask_token', false) ? [parameter('embeddings.mask_token', size)] : []),
      ...(config.flag('use_absolute_position_embeddings', true)
        ? [parameter('embeddings.position_embeddings', (count + 1) * size)]
        : []),
      ...patches('embeddings.patch_embeddings.projection', size, config.count('num_channels', 3) * patch * patch, true),
      ...(config.flag('use_mean_pooling', true) ? [] : [layerNorm('layernorm', size)]),
    ]),
    towerLayers(`${PATH}.encoder.layer`, config.count('num_hidden_layers', 24), {
      size,
      inner: config.count('intermediate_size', 4096),
      heads: config.count('num_attention_heads', 16),
      fn: config.activation('hidden_act', 'gelu'),
      form,
      norms: ['layernorm_before', 'layernorm_after'],
      attention: {
        name: 'attention',
        output: 'projection_layer',
        qkvBias: config.flag('attention_bias', false),
        outputBias: true,
        norms: config.flag('use_qk_norm', false),
      },
      mlp: { name: 'mlp', names: ['fc1', 'fc2'], bias: true },
      scales: ['lambda_1', 'lambda_2'],
    }),
  ];
}

export const internvl: Architecture = {
  modelTypes: ['internvl'],
  source: 'transformers 5.17 models/internvl/modeling_internvl.py',
  describe: (config) => {
    const vision = config.part('vision_config') ?? new ConfigReader({}, config);
    const size = vision.count('hidden_size', 1024);
    const side = vision.side('image_size', 448);
    const count = Math.floor(side / vision.side('patch_size', 14)) ** 2;
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'qwen2' });
    const { hiddenSize } = text.description;
    const joined = size * Math.floor(1 / config.number('downsample_ratio', 0.5)) ** 2;
    return insideVision(text.description, {
      idle: [
        ...tower(vision, size, count),
        once('model.multi_modal_projector', [
          layerNorm('layer_norm', joined),
          dense('linear_1', joined, hiddenSize),
          dense('linear_2', hiddenSize, hiddenSize),
        ]),
      ],
      image: { patches: count, tokens: config.count('image_seq_length', 256), pixels: `${side} × ${side}` },
      tied: config.flag('tie_word_embeddings', true),
      bufferBytes: 0,
    });
  },
};
