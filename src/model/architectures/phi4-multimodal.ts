import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { noPeftDefaults } from './parts.ts';
import { phi3 } from './phi3.ts';
import { dense, layerNorm, layers, once, parameter } from './vision/blocks.ts';
import { imageOf, siglip } from './vision/towers.ts';

const ROOT = 'model.embed_tokens_extend';
const TEXT = { num_key_value_heads: 8, vocab_size: 200064 };
const VISION = { image_size: 448, num_hidden_layers: 27 };

/** A convolution of one column. */
const convolution = (name: string, from: number, to: number, kernel = 1): readonly Op[] => [
  parameter(`${name}.weight`, from * to * kernel),
  parameter(`${name}.bias`, to),
];

/** A conformer over frames of sound, and its two ways into the text. */
function audioTower(config: ConfigReader, textSize: number): readonly IdleModules[] {
  const size = config.count('hidden_size', 1024);
  const inner = config.count('intermediate_size', 1536);
  const heads = config.count('num_attention_heads', 16);
  const channels = config.count('nemo_conv_channels', 1024);
  const halvings = Math.floor(Math.log2(config.count('time_reduction', 8)));
  const wide = config.count('ext_pw_out_channel', 1024);
  const deep = size * config.count('depthwise_multiplier', 1);
  const separable = config.count('depthwise_separable_out_channel', 1024);
  const distances = config.count('bias_max_distance', 1000) * (config.flag('bias_symmetric', false) ? 1 : 2);
  let frequencies = config.count('input_size', 80);
  for (let step = 0; step < halvings; step += 1) frequencies = Math.floor((frequencies - 1) / 2) + 1;
  const feedForward = (name: string): readonly Op[] => [
    layerNorm(`${name}.layer_norm`, size),
    dense(`${name}.gate_up_proj`, size, 2 * inner),
    dense(`${name}.down_proj`, inner, size),
  ];
  const path = `${ROOT}.audio_embed`;
  return [
    once(`${path}.encoder`, [
      ...convolution('embed.conv.0', 1, channels, 9),
      ...Array.from({ length: halvings - 1 }, (_, index) => [
        ...convolution(`embed.conv.${3 * index + 2}`, 1, channels, 9),
        ...convolution(`embed.conv.${3 * index + 3}`, channels, channels),
      ]).flat(),
      dense('embed.out', channels * frequencies, size),
      parameter('relative_attention_bias_layer.bias_values.weight', distances * heads),
    ]),
    layers(`${path}.encoder.encoders`, config.count('num_blocks', 24), [
      ...feedForward('feed_forward_in'),
      ...['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((name) => dense(`self_attn.${name}`, size, size)),
      layerNorm('conv.layer_norm', size),
      parameter('conv.glu.b1', wide),
      parameter('conv.glu.b2', wide),
      ...convolution('conv.glu.ext_pw_conv_1d', size, 2 * wide),
      ...convolution('conv.dw_sep_conv_1d.dw_conv', 1, deep, config.count('kernel_size', 3)),
      ...convolution('conv.dw_sep_conv_1d.pw_conv', deep, separable),
      ...convolution('conv.ext_pw_conv_1d', size, wide),
      ...feedForward('feed_forward_out'),
      layerNorm('layer_norm_att', size),
      layerNorm('layer_norm', size),
    ]),
    once(
      path,
      ['speech', 'vision_speech'].flatMap((way) => [
        dense(`up_proj_for_${way}`, size, textSize),
        dense(`down_proj_for_${way}`, textSize, textSize),
      ]),
    ),
  ];
}

/** Phi 3's layers, and beside them a tower for pictures and one for sound. */
export const phi4Multimodal: Architecture = {
  modelTypes: ['phi4_multimodal'],
  source: 'transformers 5.17 models/phi4_multimodal/modeling_phi4_multimodal.py',
  describe: (config) => {
    const text = phi3.describe(new ConfigReader({ ...TEXT, ...config.entries() }, config), 'phi3');
    const vision = new ConfigReader({ ...VISION, ...config.part('vision_config')?.entries() }, config);
    const audio = config.part('audio_config') ?? new ConfigReader({}, config);
    const tower = siglip(vision, `${ROOT}.image_embed.img_processor`, {
      inner: 4304,
      patch: 14,
      size: 1152,
      heads: true,
      attentionHeads: 16,
    });
    const { hiddenSize } = text;
    return {
      ...text,
      idle: [
        ...tower.modules,
        once(`${ROOT}.image_embed`, [
          parameter('global_img_feature_extensor', tower.hiddenSize),
          parameter('sub_img_feature_extensor', tower.hiddenSize),
          dense('img_projection_up', tower.hiddenSize, hiddenSize),
          dense('img_projection_down', hiddenSize, hiddenSize),
        ]),
        ...audioTower(audio, hiddenSize),
      ],
      image: imageOf(tower, 4),
      bufferBytes: text.bufferBytes + tower.bufferBytes,
      peft: noPeftDefaults,
    };
  },
};
