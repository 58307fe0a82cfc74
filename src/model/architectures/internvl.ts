import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import {
  dense,
  layerNorm,
  layers,
  normOf,
  once,
  parameter,
  patches,
  projections,
  rmsNorm,
  twoLayers,
} from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';

const PATH = 'model.vision_tower';

function tower(config: ConfigReader, size: number, count: number): readonly IdleModules[] {
  const form = config.word('norm_type', 'layer_norm', ['layer_norm', 'rms_norm']) === 'rms_norm' ? 'rms' : 'layer';
  const patch = config.side('patch_size', 14);
  const headNorms: readonly Op[] = config.flag('use_qk_norm', false)
    ? [rmsNorm('attention.q_norm', size), rmsNorm('attention.k_norm', size)]
    : [];
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
    layers(`${PATH}.encoder.layer`, config.count('num_hidden_layers', 24), [
      parameter('lambda_1', size),
      parameter('lambda_2', size),
      ...projections('attention', size, 'projection_layer', {
        qkv: config.flag('attention_bias', false),
        output: true,
      }),
      ...headNorms,
      ...twoLayers('mlp', ['fc1', 'fc2'], size, config.count('intermediate_size', 4096)),
      normOf(form, 'layernorm_before', size),
      normOf(form, 'layernorm_after', size),
    ]),
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
