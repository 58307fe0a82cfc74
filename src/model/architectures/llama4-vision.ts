import { ConfigReader } from '../config-reader.ts';
import type { Architecture } from './architecture.ts';
import { peftDefaults } from './parts.ts';
import { dense, layerNorm, layers, once, parameter, projections, twoLayers } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';

export const llama4Vision: Architecture = {
  modelTypes: ['llama4'],
  source: 'transformers 5.17 models/llama4/modeling_llama4.py',
  describe: (config) => {
    const vision = config.part('vision_config') ?? new ConfigReader({}, config);
    const size = vision.count('hidden_size', 768);
    const inner = vision.count('intermediate_size', 5632);
    const side = vision.side('image_size', 448);
    const patch = vision.side('patch_size', 14);
    const count = Math.floor(side / patch) ** 2;
    const ratio = vision.number('pixel_shuffle_ratio', 0.5);
    const [from, to] = [vision.count('projector_input_dim', 4096), vision.count('projector_output_dim', 4096)];
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: 'llama4_text' });
    const { hiddenSize, head } = text.description;
    return {
      ...insideVision(text.description, {
        idle: [
          once('vision_model', [
            parameter('class_embedding', size),
            parameter('positional_embedding_vlm', (count + 1) * size),
            dense('patch_embedding.linear', vision.count('num_channels', 3) * patch * patch, size, false),
            layerNorm('layernorm_pre', size),
            layerNorm('layernorm_post', size),
          ]),
          layers('vision_model.model.layers', vision.count('num_hidden_layers', 34), [
            ...projections('self_attn', size, 'o_proj', { qkv: true, output: true }),
            ...twoLayers('mlp', ['fc1', 'fc2'], size, inner),
            layerNorm('input_layernorm', size),
            layerNorm('post_attention_layernorm', size),
          ]),
          once('vision_model.vision_adapter', [
            dense('mlp.fc1', inner, from, vision.flag('multi_modal_projector_bias', false)),
            dense('mlp.fc2', from, to, vision.flag('multi_modal_projector_bias', false)),
          ]),
          once('multi_modal_projector', [
            dense('linear_1', vision.count('vision_output_dim', 7680), hiddenSize, false),
          ]),
        ],
        image: { patches: count + 1, tokens: Math.ceil(count * ratio ** 2), pixels: `${side} × ${side}` },
        tied: head.tied,
        bufferBytes: (count + 1) * Math.floor(size / vision.count('num_attention_heads', 16)) * 4,
      }),
      layersPath: 'language_model.model.layers',
      head: { ...head, name: 'language_model.lm_head' },
      peft: {
        ...text.description.peft,
        ...peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'down_proj'], ['down_proj']),
      },
    };
  },
};
