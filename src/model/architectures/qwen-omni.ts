import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, ModelDescription } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { noPeftDefaults } from './parts.ts';
import { qwen2 } from './qwen2.ts';
import { dense, layerNorm, layers, once, parameter, patches, rmsNorm, twoLayers } from './vision/blocks.ts';

const TEXT = {
  vocab_size: 152064,
  hidden_size: 3584,
  intermediate_size: 18944,
  num_hidden_layers: 28,
  num_attention_heads: 28,
  num_key_value_heads: 4,
};
const SIDE = 1024;

/** Whisper's encoder. */
function audioTower(config: ConfigReader): readonly IdleModules[] {
  const size = config.count('d_model', 1280);
  const output = config.count('output_dim', 3584);
  return [
    once('audio_tower', [
      ...patches('conv1', size, 3 * config.count('num_mel_bins', 128), true),
      ...patches('conv2', size, 3 * size, true),
      parameter('audio_bos_eos_token.weight', 2 * output),
      layerNorm('ln_post', size),
      dense('proj', size, output),
    ]),
    layers('audio_tower.layers', config.count('encoder_layers', 32), [
      dense('self_attn.k_proj', size, size, false),
      ...['v_proj', 'q_proj', 'out_proj'].map((name) => dense(`self_attn.${name}`, size, size)),
      layerNorm('self_attn_layer_norm', size),
      ...twoLayers('', ['fc1', 'fc2'], size, config.count('encoder_ffn_dim', 5120)),
      layerNorm('final_layer_norm', size),
    ]),
  ];
}

function visionTower(config: ConfigReader): readonly IdleModules[] {
  const size = config.count('hidden_size', 3584);
  const inner = config.count('intermediate_size', 3420);
  const patch = config.side('patch_size', 14);
  const pixels = config.count(['in_channels', 'in_chans'], 3) * config.side('temporal_patch_size', 2) * patch * patch;
  const joined = size * config.count('spatial_merge_size', 2) ** 2;
  return [
    once('visual', patches('patch_embed.proj', size, pixels, false)),
    layers('visual.blocks', config.count('depth', 32), [
      rmsNorm('norm1', size),
      rmsNorm('norm2', size),
      ...['q', 'k', 'v', 'proj'].map((name) => dense(`attn.${name}`, size, size)),
      dense('mlp.gate_proj', size, inner),
      dense('mlp.up_proj', size, inner),
      dense('mlp.down_proj', inner, size),
    ]),
    once('visual.merger', [
      rmsNorm('ln_q', size),
      ...twoLayers('mlp', ['0', '2'], joined, joined, config.count('out_hidden_size', 3584)),
    ]),
  ];
}

function describeThinker(config: ConfigReader): ModelDescription {
  const part = config.part('text_config');
  const reader = new ConfigReader({ ...TEXT, ...part?.entries() }, config);
  const vision = config.part('vision_config') ?? new ConfigReader({}, config);
  const text = qwen2.describe(reader, 'qwen2');
  const count = Math.floor(SIDE / vision.side('patch_size', 14)) ** 2;
  return {
    ...text,
    idle: [...audioTower(config.part('audio_config') ?? new ConfigReader({}, config)), ...visionTower(vision)],
    image: {
      patches: count,
      tokens: Math.ceil(count / vision.count('spatial_merge_size', 2) ** 2),
      pixels: `${SIDE} × ${SIDE}`,
    },
    head: { ...text.head, tied: config.flag('tie_word_embeddings', false) },
    // Positions have three parts for every row.
    rotaryTables: text.rotaryTables && { ...text.rotaryTables, perRow: true },
    peft: noPeftDefaults,
  };
}

/** What is trained of Qwen 2.5 Omni is its thinker; the config of the whole holds that one's. */
export const qwenOmni: Architecture = {
  modelTypes: ['qwen2_5_omni_thinker', 'qwen2_5_omni'],
  source: 'transformers 5.17 models/qwen2_5_omni/modeling_qwen2_5_omni.py',
  describe: (config, modelType) => {
    if (modelType === 'qwen2_5_omni_thinker') return describeThinker(config);
    config.assumptions.push('the thinker alone is loaded and trained; the talker and its vocoder are left out');
    return describeThinker(config.part('thinker_config') ?? new ConfigReader({}, config));
  },
};
