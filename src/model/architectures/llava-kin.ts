import { ConfigReader } from '../config-reader.ts';
import type { IdleModules, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { CLIP_LARGE } from './llava.ts';
import { dense, layerNorm, once, parameter, rmsNorm } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { describeTower, imageOf, pixtral, siglip2, type Tower } from './vision/towers.ts';

/** What stands between tower and text: `vision` features of a vector, `text` of a token. */
type Projector = (config: ConfigReader, vision: number, text: number) => readonly Op[];

interface Kin {
  /** Text model and tower where the config does not say. */
  readonly text: string;
  readonly tower: (config: ConfigReader) => Tower;
  /** Vectors of an image that become one token. */
  readonly perToken: (config: ConfigReader) => number;
  /** Path of the projector, `model.multi_modal_projector`. */
  readonly path?: string;
  readonly projector: Projector;
  /** A vector of the text's size for line ends. */
  readonly newline?: boolean;
  readonly tied: boolean;
}

const SIGLIP_384 = {
  hidden_size: 1152,
  intermediate_size: 4304,
  patch_size: 14,
  image_size: 384,
  num_hidden_layers: 26,
  num_attention_heads: 16,
  vision_use_head: false,
};

const one = (): number => 1;
const squared = (key: string) => (config: ConfigReader) => config.count(key, 2) ** 2;

const twoLayers: Projector = (config, vision, text) => {
  const bias = config.flag('multimodal_projector_bias', true);
  return [dense('linear_1', vision, text, bias), dense('linear_2', text, text, bias)];
};

/** Neighbouring vectors joined, a gated layer: half of what the first one makes reaches the second. */
const shuffled =
  (normed: boolean, size: number | undefined): Projector =>
  (config, vision, text) => {
    const joined = vision * config.count('downsample_factor', 2) ** 2;
    const inner = config.count('alignment_intermediate_size', size ?? text);
    return [
      ...(normed ? [layerNorm('layernorm', joined)] : []),
      dense('linear_1', joined, inner),
      dense('linear_2', Math.floor(inner / 2), text),
    ];
  };

const siglipTower =
  (absent: Readonly<Record<string, unknown>>) =>
  (config: ConfigReader): Tower =>
    describeTower(config, 'model.vision_tower', 'siglip_vision_model', absent);

const clipTower = (config: ConfigReader): Tower =>
  describeTower(config, 'model.vision_tower', 'clip_vision_model', CLIP_LARGE);

const KIN: Readonly<Record<string, Kin>> = {
  llava_next_video: {
    text: 'llama',
    tower: clipTower,
    perToken: one,
    projector: twoLayers,
    newline: true,
    tied: false,
  },
  llava_onevision: {
    text: 'qwen2',
    tower: siglipTower(SIGLIP_384),
    perToken: one,
    projector: twoLayers,
    newline: true,
    tied: false,
  },
  vipllava: {
    text: 'llama',
    tower: clipTower,
    perToken: one,
    projector: (config, vision, text) => {
      const layers = config.raw('vision_feature_layers') ?? [-2, -5, -8, -11, 6];
      const joined = vision * (Array.isArray(layers) ? layers.length : 1);
      return [layerNorm('projector_layernorm', joined), dense('linear_1', joined, text), dense('linear_2', text, text)];
    },
    tied: false,
  },
  aya_vision: {
    text: 'cohere2',
    tower: siglipTower({ ...SIGLIP_384, num_attention_heads: 14 }),
    perToken: squared('downsample_factor'),
    projector: shuffled(true, undefined),
    tied: true,
  },
  cohere2_vision: {
    text: 'cohere2',
    tower: siglipTower({ hidden_size: 1152, image_size: 512, num_attention_heads: 12, num_hidden_layers: 27 }),
    perToken: squared('downsample_factor'),
    projector: shuffled(false, 36864),
    tied: true,
  },
  lfm2_vl: {
    text: 'lfm2',
    tower: (config) => siglip2(config.part('vision_config') ?? new ConfigReader({}, config), 'model.vision_tower'),
    perToken: squared('downsample_factor'),
    projector: (config, vision, text) => {
      const joined = vision * config.count('downsample_factor', 2) ** 2;
      const inner = config.count('projector_hidden_size', 2560);
      const bias = config.flag('projector_bias', true);
      return [
        ...(config.flag('projector_use_layernorm', true) ? [layerNorm('layer_norm', joined)] : []),
        dense('linear_1', joined, inner, bias),
        dense('linear_2', inner, text, bias),
      ];
    },
    tied: true,
  },
  lighton_ocr: {
    text: 'qwen3',
    tower: (config) => pixtral(config.part('vision_config') ?? new ConfigReader({}, config), 'model.vision_encoder'),
    perToken: squared('spatial_merge_size'),
    path: 'model.vision_projection',
    projector: (config, vision, text) => [
      rmsNorm('norm', vision),
      dense('patch_merger.merging_layer', vision * config.count('spatial_merge_size', 2) ** 2, vision, false),
      dense('linear_1', vision, text, false),
      dense('linear_2', text, text, false),
    ],
    tied: true,
  },
};

/** Vision-language models built like LLaVA: a tower, a projector, a text model. */
export const llavaKin: Architecture = {
  modelTypes: Object.keys(KIN),
  source:
    'transformers 5.17 models/llava_next_video, llava_onevision, vipllava, aya_vision, cohere2_vision, lfm2_vl, lighton_ocr',
  describe: (config, modelType) => {
    const kin = KIN[modelType]!;
    const tower = kin.tower(config);
    const text = describeText(config.part('text_config'), config, TEXT_MODELS, { modelType: kin.text });
    const { hiddenSize } = text.description;
    const idle: readonly IdleModules[] = [
      ...tower.modules,
      once(kin.path ?? 'model.multi_modal_projector', kin.projector(config, tower.hiddenSize, hiddenSize)),
      ...(kin.newline ? [once('model', [parameter('image_newline', hiddenSize)])] : []),
    ];
    return insideVision(text.description, {
      idle,
      image: imageOf(tower, kin.perToken(config)),
      tied: config.flag('tie_word_embeddings', kin.tied),
      bufferBytes: tower.bufferBytes,
    });
  },
};
