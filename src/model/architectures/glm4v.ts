import { ConfigReader } from '../config-reader.ts';
import type { Architecture } from './architecture.ts';
import { dense, layerNorm, once, parameter, patches, rmsNorm } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { towerLayers } from './vision/tower-layers.ts';

/** Side of the image that assumptions speak of: the tower takes any size. */
const SIDE = 1024;

export const glm4v: Architecture = {
  modelTypes: ['glm4v', 'glm46v'],
  source: 'transformers 5.17 models/glm4v/modeling_glm4v.py, models/glm46v/modeling_glm46v.py',
  describe: (config) => {
    const vision = config.part('vision_config') ?? new ConfigReader({}, config);
    const size = vision.count('hidden_size', 1536);
    const heads = vision.count('num_heads', 12);
    const patch = vision.side('patch_size', 14);
    const merge = vision.count('spatial_merge_size', 2) ** 2;
    const output = vision.count('out_hidden_size', 4096);
    const inner = vision.count('intermediate_size', 13696);
    const positions = Math.floor(vision.side('image_size', 336) / patch) ** 2;
    const pixels = vision.count('in_channels', 3) * vision.side('temporal_patch_size', 2) * patch * patch;
    const bias = vision.flag('attention_bias', false);
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'glm4v_text' });
    const count = Math.floor(SIDE / patch) ** 2;
    return insideVision(text.description, {
      idle: [
        once('model.visual', [
          parameter('embeddings.position_embedding.weight', positions * size),
          ...patches('patch_embed.proj', size, pixels, true),
          rmsNorm('post_conv_layernorm', size),
          ...patches('downsample', output, size * merge, true),
          rmsNorm('post_layernorm', size),
        ]),
        towerLayers('model.visual.blocks', vision.count('depth', 24), {
          size,
          heads,
          inner: output,
          fn: vision.activation('hidden_act', 'silu'),
          form: 'rms',
          norms: ['norm1', 'norm2'],
          attention: {
            name: 'attn',
            fused: true,
            output: 'proj',
            qkvBias: bias,
            outputBias: false,
            turns: { wide: 'before', flat: true },
          },
          mlp: { name: 'mlp', names: ['gate_proj', 'up_proj', 'down_proj'], bias: false },
        }),
        once('model.visual.merger', [
          dense('proj', output, output, false),
          layerNorm('post_projection_norm', output),
          dense('gate_proj', output, inner, false),
          dense('up_proj', output, inner, false),
          dense('down_proj', inner, output, false),
        ]),
      ],
      image: { patches: count, tokens: Math.ceil(count / merge), pixels: `${SIDE} × ${SIDE}` },
      tied: config.flag('tie_word_embeddings', false),
      // Frequencies of half a head's features.
      bufferBytes: Math.floor(size / heads / 4) * 4,
    });
  },
};
