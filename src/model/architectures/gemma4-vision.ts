import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { peftDefaults } from './parts.ts';
import { dense, layers, normOf, once, parameter, rmsNorm } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';

/** A linear layer inside a module that clips what goes in and out. */
const clipped = (name: string, from: number, to: number): Op => dense(`${name}.linear`, from, to, false);
/** Numbers that clipping holds for every layer: four buffers, each an allocation of its own. */
const CLIP_BYTES = 4 * 512;

function visionTower(config: ConfigReader): { readonly modules: readonly IdleModules[]; readonly size: number } {
  const size = config.count('hidden_size', 768);
  const inner = config.count('intermediate_size', 3072);
  const headDim = config.count('head_dim', 64);
  const [all, kv] = [
    config.count('num_attention_heads', 12) * headDim,
    config.count('num_key_value_heads', 12) * headDim,
  ];
  const patch = config.side('patch_size', 16);
  const path = 'model.vision_tower';
  return {
    size,
    modules: [
      once(path, [
        parameter('patch_embedder.position_embedding_table', 2 * config.count('position_embedding_size', 10240) * size),
        dense('patch_embedder.input_proj', 3 * patch * patch, size, false),
      ]),
      layers(`${path}.encoder.layers`, config.count('num_hidden_layers', 16), [
        clipped('self_attn.q_proj', size, all),
        clipped('self_attn.k_proj', size, kv),
        clipped('self_attn.v_proj', size, kv),
        clipped('self_attn.o_proj', all, size),
        rmsNorm('self_attn.q_norm', headDim),
        rmsNorm('self_attn.k_norm', headDim),
        clipped('mlp.gate_proj', size, inner),
        clipped('mlp.up_proj', size, inner),
        clipped('mlp.down_proj', inner, size),
        ...[
          'input_layernorm',
          'post_attention_layernorm',
          'pre_feedforward_layernorm',
          'post_feedforward_layernorm',
        ].map((name) => rmsNorm(name, size)),
      ]),
    ],
  };
}

/** A conformer over frames of sound. */
function audioTower(config: ConfigReader, hiddenSize: number): readonly IdleModules[] {
  const size = config.count('hidden_size', 1024);
  const listed = config.raw('subsampling_conv_channels') ?? [128, 32];
  const [first, second] = Array.isArray(listed) ? (listed as number[]) : [128, 32];
  if (first === undefined || second === undefined) config.refuse('subsampling_conv_channels must be two numbers');
  const [wide, narrow] = [first ?? 128, second ?? 32];
  const output = config.count('output_proj_dims', 1536);
  const path = 'model.audio_tower';
  const feedForward = (name: string): readonly Op[] => [
    clipped(`${name}.ffw_layer_1`, size, 4 * size),
    clipped(`${name}.ffw_layer_2`, 4 * size, size),
    rmsNorm(`${name}.pre_layer_norm`, size),
    rmsNorm(`${name}.post_layer_norm`, size),
  ];
  return [
    once(`${path}.subsample_conv_projection`, [
      parameter('layer0.conv.weight', wide * 9),
      parameter('layer0.norm.weight', wide),
      parameter('layer1.conv.weight', narrow * wide * 9),
      parameter('layer1.norm.weight', narrow),
      dense('input_proj_linear', Math.floor(wide / 4) * narrow, size, false),
    ]),
    layers(`${path}.layers`, config.count('num_hidden_layers', 12), [
      ...feedForward('feed_forward1'),
      ...feedForward('feed_forward2'),
      parameter('self_attn.per_dim_scale', Math.floor(size / config.count('num_attention_heads', 8))),
      ...['q_proj', 'k_proj', 'v_proj', 'post'].map((name) => clipped(`self_attn.${name}`, size, size)),
      dense('self_attn.relative_k_proj', size, size, false),
      clipped('lconv1d.linear_start', size, 2 * size),
      clipped('lconv1d.linear_end', size, size),
      parameter('lconv1d.depthwise_conv1d.weight', size * config.count('conv_kernel_size', 5)),
      rmsNorm('lconv1d.pre_layer_norm', size),
      rmsNorm('lconv1d.conv_norm', size),
      ...['norm_pre_attn', 'norm_post_attn', 'norm_out'].map((name) => normOf('rms', name, size)),
    ]),
    once(path, [dense('output_proj', size, output)]),
    once('model.embed_audio', [dense('embedding_projection', output, hiddenSize, false)]),
  ];
}

export const gemma4Vision: Architecture = {
  modelTypes: ['gemma4'],
  source: 'transformers 5.17 models/gemma4/modeling_gemma4.py',
  describe: (config) => {
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'gemma4_text' });
    const { hiddenSize } = text.description;
    const vision = config.part('vision_config');
    const audio = config.part('audio_config');
    const tower = vision && visionTower(vision);
    const side = 768;
    const patch = (vision ?? new ConfigReader({}, config)).side('patch_size', 16);
    const count = Math.floor(side / patch) ** 2;
    const pooled = (vision?.count('pooling_kernel_size', 3) ?? 3) ** 2;
    const clips = [
      vision?.flag('use_clipped_linears', false) ?? false,
      audio?.flag('use_clipped_linears', true) ?? false,
    ];
    const whole = insideVision(text.description, {
      idle: [
        ...(tower
          ? [
              ...tower.modules,
              once('model.embed_vision', [dense('embedding_projection', tower.size, hiddenSize, false)]),
            ]
          : []),
        ...(audio ? audioTower(audio, hiddenSize) : []),
      ],
      ...(tower ? { image: { patches: count, tokens: Math.ceil(count / pooled), pixels: `${side} × ${side}` } } : {}),
      tied: config.flag('tie_word_embeddings', true),
      bufferBytes:
        (clips[0] ? 7 * CLIP_BYTES * (vision?.count('num_hidden_layers', 16) ?? 0) : 0) +
        (clips[1] ? 10 * CLIP_BYTES * (audio?.count('num_hidden_layers', 12) ?? 0) : 0),
    });
    // PEFT's default for it is a pattern that spares the towers.
    return { ...whole, peft: peftDefaults(['q_proj', 'v_proj']) };
  },
};
