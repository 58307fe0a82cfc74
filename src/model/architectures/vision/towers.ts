import { ConfigReader } from '../../config-reader.ts';
import type { Activation, IdleModules, ImageShape, Op } from '../../ops.ts';
import { dense, layerNorm, once, parameter, patches, rmsNorm, twoLayers } from './blocks.ts';
import { towerLayers } from './tower-layers.ts';

/** A vision model that several vision-language models hold as `vision_tower`. */
export interface Tower {
  readonly modules: readonly IdleModules[];
  readonly hiddenSize: number;
  /** Vectors of an image at the size the config names. */
  readonly patches: number;
  readonly side: number;
  readonly bufferBytes: number;
}

const INDEX_BYTES = 8;

/** Layers as CLIP and SigLIP have them. */
const encoderLayers = (
  config: ConfigReader,
  path: string,
  size: number,
  inner: number,
  fn: Activation,
  heads = 12,
): IdleModules =>
  towerLayers(`${path}.encoder.layers`, config.count('num_hidden_layers', 12), {
    size,
    inner,
    heads: config.count('num_attention_heads', heads),
    fn: config.activation('hidden_act', fn),
    form: 'layer',
    norms: ['layer_norm1', 'layer_norm2'],
    attention: { name: 'self_attn', output: 'out_proj', qkvBias: true, outputBias: true },
    mlp: { name: 'mlp', names: ['fc1', 'fc2'], bias: true },
  });

/** CLIPVisionModel: a class token, learned positions. Source: transformers 5.17 models/clip/modeling_clip.py. */
function clip(config: ConfigReader, path: string): Tower {
  const size = config.count('hidden_size', 768);
  const inner = config.count('intermediate_size', 3072);
  const side = config.side('image_size', 224);
  const patch = config.side('patch_size', 32);
  const channels = config.count('num_channels', 3);
  const count = Math.floor(side / patch) ** 2;
  return {
    hiddenSize: size,
    patches: count,
    side,
    bufferBytes: (count + 1) * INDEX_BYTES,
    modules: [
      once(path, [
        parameter('embeddings.class_embedding', size),
        ...patches('embeddings.patch_embedding', size, channels * patch * patch, false),
        parameter('embeddings.position_embedding.weight', (count + 1) * size),
        layerNorm('pre_layrnorm', size),
        layerNorm('post_layernorm', size),
      ]),
      encoderLayers(config, path, size, inner, 'quick_gelu'),
    ],
  };
}

/** SiglipVisionModel: no class token, a pooling head where the config does not leave it out. Source: models/siglip/modeling_siglip.py. */
export function siglip(
  config: ConfigReader,
  path: string,
  defaults: { inner: number; patch: number; size: number; heads: boolean; attentionHeads?: number } = {
    inner: 3072,
    patch: 16,
    size: 768,
    heads: true,
  },
): Tower {
  const size = config.count('hidden_size', defaults.size);
  const inner = config.count('intermediate_size', defaults.inner);
  const side = config.side('image_size', 224);
  const patch = config.side('patch_size', defaults.patch);
  const count = Math.floor(side / patch) ** 2;
  const head = defaults.heads && config.flag('vision_use_head', true);
  return {
    hiddenSize: size,
    patches: count,
    side,
    bufferBytes: count * INDEX_BYTES,
    modules: [
      once(path, [
        ...patches('embeddings.patch_embedding', size, config.count('num_channels', 3) * patch * patch, true),
        parameter('embeddings.position_embedding.weight', count * size),
        layerNorm('post_layernorm', size),
        ...(head ? poolingHead(size, inner) : []),
      ]),
      encoderLayers(config, path, size, inner, 'gelu_pytorch_tanh', defaults.attentionHeads),
    ],
  };
}

/** Siglip2VisionModel: patches come flat and go through a linear layer. Source: models/siglip2/modeling_siglip2.py. */
export function siglip2(config: ConfigReader, path: string): Tower {
  const size = config.count('hidden_size', 768);
  const inner = config.count('intermediate_size', 3072);
  const patch = config.side('patch_size', 16);
  const count = config.count('num_patches', 256);
  return {
    hiddenSize: size,
    patches: count,
    side: Math.floor(Math.sqrt(count)) * patch,
    bufferBytes: 0,
    modules: [
      once(path, [
        dense('embeddings.patch_embedding', config.count('num_channels', 3) * patch * patch, size),
        parameter('embeddings.position_embedding.weight', count * size),
        layerNorm('post_layernorm', size),
        ...(config.flag('vision_use_head', true) ? poolingHead(size, inner) : []),
      ]),
      encoderLayers(config, path, size, inner, 'gelu_pytorch_tanh'),
    ],
  };
}

/** One learned vector that looks at all others. */
const poolingHead = (size: number, inner: number): readonly Op[] => [
  parameter('head.probe', size),
  parameter('head.attention.in_proj_weight', 3 * size * size),
  parameter('head.attention.in_proj_bias', 3 * size),
  dense('head.attention.out_proj', size, size),
  layerNorm('head.layernorm', size),
  ...twoLayers('head.mlp', ['fc1', 'fc2'], size, inner),
];

/** PixtralVisionModel: rotary positions, gated blocks without bias. Source: models/pixtral/modeling_pixtral.py. */
export function pixtral(config: ConfigReader, path: string): Tower {
  const size = config.count('hidden_size', 1024);
  const inner = config.count('intermediate_size', 4096);
  const heads = config.count('num_attention_heads', 16);
  const patch = config.side('patch_size', 16);
  const side = config.side('image_size', 1024);
  return {
    hiddenSize: size,
    patches: Math.floor(side / patch) ** 2,
    side,
    // Frequencies of a head's features, kept twice.
    bufferBytes: Math.floor(size / heads / 2) * 4 * 2,
    modules: [
      once(path, [
        ...patches('patch_conv', size, config.count('num_channels', 3) * patch * patch, false),
        rmsNorm('ln_pre', size),
      ]),
      towerLayers(`${path}.transformer.layers`, config.count('num_hidden_layers', 24), {
        size,
        inner,
        heads,
        fn: config.activation('hidden_act', 'gelu'),
        form: 'rms',
        norms: ['attention_norm', 'ffn_norm'],
        attention: { name: 'attention', output: 'o_proj', qkvBias: false, outputBias: false, turns: {} },
        mlp: { name: 'feed_forward', names: ['gate_proj', 'up_proj', 'down_proj'], bias: false },
      }),
    ],
  };
}

const TOWERS: Readonly<Record<string, (config: ConfigReader, path: string) => Tower>> = {
  clip_vision_model: clip,
  siglip_vision_model: siglip,
  pixtral,
};

/** The tower named by `vision_config`; `absent` is the whole config that transformers takes where there is none. */
export function describeTower(
  outer: ConfigReader,
  path: string,
  modelType: string,
  absent: Readonly<Record<string, unknown>>,
): Tower {
  const config = outer.part('vision_config') ?? new ConfigReader(absent, outer);
  const said = config.raw('model_type') ?? modelType;
  const tower = typeof said === 'string' ? TOWERS[said] : undefined;
  if (!tower) outer.refuse(`a vision tower of type ${String(said)} is not described`);
  return (tower ?? clip)(config, path);
}

/** One image at the tower's own size, every vector a token of the row, or `perToken` of them one. */
export const imageOf = (tower: Tower, perToken = 1): ImageShape => ({
  patches: tower.patches,
  tokens: Math.ceil(tower.patches / perToken),
  pixels: `${tower.side} × ${tower.side}`,
});
