import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { gemma3nText } from './gemma3n.ts';
import { add, call, linear, noPeftDefaults, norm } from './parts.ts';
import { dense, layers, once, parameter, rmsNorm } from './vision/blocks.ts';

/** Parameters of timm's mobilenetv5_300m_enc: convolutions and norms alone. Counted with timm 1.0.31. */
const MOBILENET_V5_300M = 294_126_912;
const IMAGE = { patches: 256, tokens: 256, pixels: '768 × 768' } as const;

/**
 * Gemma3nMultimodalEmbedder: tokens of pictures or sound looked up in a table of their own, normed and brought to the text's
 * size. It runs on every token of every row, whatever they are, and its result is chosen where they are its own.
 */
function embedder(name: string, config: ConfigReader, size: number, textSize: number): readonly Op[] {
  const rows = config.count('vocab_size', 128);
  return [
    call(name, {}, { projected: '$embeds' }, [
      { op: 'embedding', name: 'embedding', rows, size, by: 'tokens', output: 'hard_emb' },
      norm('hard_embedding_norm', 'hard_emb', 'emb_norm', size, 'rms_wide'),
      { op: 'parameter', name: 'soft_embedding_norm.weight', elements: size },
      linear('embedding_projection', 'emb_norm', 'emb_norm_proj', size, textSize),
      norm('embedding_post_projection_norm', 'emb_norm_proj', 'projected', textSize, 'rms_bare'),
    ]),
    add('$embeds', 'inputs_embeds', 'inputs_embeds'),
    { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
  ];
}

/** A conformer over frames of sound. */
function audioTower(config: ConfigReader, size: number): readonly IdleModules[] {
  const channels = config.raw('sscp_conv_channel_size') ?? [128, 32];
  const kernels = config.raw('sscp_conv_kernel_size');
  if (kernels !== undefined && JSON.stringify(kernels) !== '[[3,3],[3,3]]') {
    config.refuse('a Gemma 3n whose convolutions over sound are not 3 × 3 is not described');
  }
  const [wide, narrow] = Array.isArray(channels) ? (channels as number[]) : [128, 32];
  const frequencies = Math.ceil(Math.ceil(config.count('input_feat_size', 128) / 2) / 2);
  const heads = config.count('conf_num_attention_heads', 8);
  const path = 'model.audio_tower';
  const feedForward = (name: string): readonly Op[] => [
    rmsNorm(`${name}.pre_layer_norm`, size),
    dense(`${name}.ffw_layer_1`, size, 4 * size, false),
    dense(`${name}.ffw_layer_2`, 4 * size, size, false),
    rmsNorm(`${name}.post_layer_norm`, size),
  ];
  return [
    once(`${path}.subsample_conv_projection`, [
      parameter('conv_0.conv.weight', (wide ?? 128) * 9),
      parameter('conv_0.norm.weight', wide ?? 128),
      parameter('conv_1.conv.weight', (narrow ?? 32) * (wide ?? 128) * 9),
      parameter('conv_1.norm.weight', narrow ?? 32),
      dense('input_proj_linear', (narrow ?? 32) * frequencies, size, false),
    ]),
    layers(`${path}.conformer`, config.count('conf_num_hidden_layers', 12), [
      ...feedForward('ffw_layer_start'),
      rmsNorm('attention.pre_attn_norm', size),
      dense('attention.attn.relative_position_embedding.pos_proj', size, size, false),
      parameter('attention.attn.per_dim_scale', Math.floor(size / heads)),
      ...['q_proj', 'k_proj', 'v_proj'].map((name) => dense(`attention.attn.${name}`, size, size, false)),
      dense('attention.post', size, size, false),
      rmsNorm('attention.post_norm', size),
      rmsNorm('lconv1d.pre_layer_norm', size),
      dense('lconv1d.linear_start', size, 2 * size, false),
      parameter('lconv1d.depthwise_conv1d.weight', size * config.count('conf_conv_kernel_size', 5)),
      rmsNorm('lconv1d.conv_norm', size),
      dense('lconv1d.linear_end', size, size, false),
      ...feedForward('ffw_layer_end'),
      rmsNorm('norm', size),
    ]),
  ];
}

export const gemma3nVision: Architecture = {
  modelTypes: ['gemma3n'],
  source: 'transformers 5.17 models/gemma3n/modeling_gemma3n.py',
  describe: (config) => {
    const vision = config.part('vision_config') ?? new ConfigReader({}, config);
    const audio = config.part('audio_config') ?? new ConfigReader({}, config);
    const text = config.part('text_config') ?? new ConfigReader({}, config);
    const tower = vision.raw('architecture') ?? 'mobilenetv5_300m_enc';
    if (tower !== 'mobilenetv5_300m_enc') config.refuse(`a vision tower ${String(tower)} of timm is not described`);
    const textSize = text.count('hidden_size', 2048);
    const visionSize = vision.count('hidden_size', 2048);
    const audioSize = audio.count('hidden_size', 1536);
    const description = gemma3nText(text, [
      ...embedder('embed_vision', vision, visionSize, textSize),
      ...embedder('embed_audio', audio, audioSize, textSize),
    ]);
    return {
      ...description,
      layersPath: 'model.language_model.layers',
      idle: [once('model.vision_tower', [parameter('weights', MOBILENET_V5_300M)]), ...audioTower(audio, audioSize)],
      image: IMAGE,
      head: { ...description.head, tied: config.flag('tie_word_embeddings', true) },
      peft: noPeftDefaults,
    };
  },
};
