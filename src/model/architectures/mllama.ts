import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { noPeftDefaults } from './parts.ts';
import {
  dense,
  layerNorm,
  layers,
  once,
  parameter,
  patches,
  projections,
  rmsNorm,
  twoLayers,
} from './vision/blocks.ts';
import { insideVision } from './vision/text.ts';

const PATH = 'model.vision_model';
/** Rows of the token table beyond the vocabulary (the image token's neighbours). */
const EXTRA_ROWS = 8;

function tower(config: ConfigReader, size: number, count: number): readonly IdleModules[] {
  const inner = config.count('intermediate_size', 5120);
  const tiles = config.count('max_num_tiles', 4);
  const ratios = config.raw('supported_aspect_ratios');
  const kinds = (Array.isArray(ratios) ? ratios.length : 8) + 1;
  const patch = config.side('patch_size', 14);
  const layer: readonly Op[] = [
    ...projections('self_attn', size, 'o_proj', { qkv: false, output: false }),
    ...twoLayers('mlp', ['fc1', 'fc2'], size, inner),
    layerNorm('input_layernorm', size),
    layerNorm('post_attention_layernorm', size),
  ];
  return [
    once(PATH, [
      parameter('class_embedding', size),
      ...patches('patch_embedding', size, config.count('num_channels', 3) * patch * patch, false),
      parameter('gated_positional_embedding.gate', 1),
      parameter('gated_positional_embedding.embedding', (count + 1) * size),
      parameter('gated_positional_embedding.tile_embedding.weight', kinds * tiles * (count + 1) * size),
      parameter('pre_tile_positional_embedding.gate', 1),
      parameter('pre_tile_positional_embedding.embedding.weight', kinds * tiles * size),
      parameter('post_tile_positional_embedding.gate', 1),
      parameter('post_tile_positional_embedding.embedding.weight', kinds * tiles * size),
      layerNorm('layernorm_pre', size),
      layerNorm('layernorm_post', size),
    ]),
    layers(`${PATH}.transformer.layers`, config.count('num_hidden_layers', 32), layer),
    layers(`${PATH}.global_transformer.layers`, config.count('num_global_layers', 8), [
      ...layer,
      parameter('gate_attn', 1),
      parameter('gate_ffn', 1),
    ]),
  ];
}

/** Layers that read the image: on text alone they are passed over. */
function crossLayers(shape: ReturnType<typeof readLlamaKeys>, count: number): IdleModules {
  const { hiddenSize, intermediateSize: inner } = shape;
  const { heads, kvHeads, headDim } = shape.shape;
  return layers('model.language_model.layers', count, [
    dense('cross_attn.q_proj', hiddenSize, heads * headDim, false),
    dense('cross_attn.k_proj', hiddenSize, kvHeads * headDim, false),
    dense('cross_attn.v_proj', hiddenSize, kvHeads * headDim, false),
    dense('cross_attn.o_proj', heads * headDim, hiddenSize, false),
    rmsNorm('cross_attn.q_norm', headDim),
    rmsNorm('cross_attn.k_norm', headDim),
    rmsNorm('input_layernorm', hiddenSize),
    parameter('cross_attn_attn_gate', 1),
    dense('mlp.gate_proj', hiddenSize, inner, false),
    dense('mlp.up_proj', hiddenSize, inner, false),
    dense('mlp.down_proj', inner, hiddenSize, false),
    rmsNorm('post_attention_layernorm', hiddenSize),
    parameter('cross_attn_mlp_gate', 1),
  ]);
}

export const mllama: Architecture = {
  modelTypes: ['mllama'],
  source: 'transformers 5.17 models/mllama/modeling_mllama.py',
  describe: (config) => {
    const vision = config.part('vision_config') ?? new ConfigReader({}, config);
    const text = config.part('text_config') ?? new ConfigReader({}, config);
    const keys = readLlamaKeys(text, {
      hidden: 4096,
      intermediate: 14336,
      layers: 40,
      heads: 32,
      kvHeads: 8,
      vocab: 128256,
    });
    const named = text.raw('cross_attention_layers') ?? [3, 8, 13, 18, 23, 28, 33, 38];
    if (!Array.isArray(named)) config.refuse('cross_attention_layers must be a list');
    const cross = (Array.isArray(named) ? named : []).filter((index) => Number(index) < keys.layers).length;
    const size = vision.count('hidden_size', 1280);
    const side = vision.side('image_size', 448);
    const count = Math.floor(side / vision.side('patch_size', 14)) ** 2;
    const line = llamaLine(
      { ...keys, layers: keys.layers - cross },
      { kinds: [llamaLayer(keys)], tied: false, peft: noPeftDefaults },
    );
    return insideVision(
      {
        ...line,
        embedding: line.embedding.map((op) => (op.op === 'embedding' ? { ...op, rows: op.rows + EXTRA_ROWS } : op)),
      },
      {
        idle: [
          ...tower(vision, size, count),
          once('model', [dense('multi_modal_projector', vision.count('vision_output_dim', 7680), keys.hiddenSize)]),
          crossLayers(keys, cross),
        ],
        // The image stands beside the row: only its tower and the layers that read it cost.
        image: { patches: (count + 1) * vision.count('max_num_tiles', 4), tokens: 0, pixels: `${side} × ${side}` },
        tied: false,
      },
    );
  },
};
