import { ConfigReader } from '../config-reader.ts';
import type { Activation, IdleModules, ImageShape, ModelDescription, MoeOp, NormForm, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { dense, layerNorm, layers, once, parameter, patches, rmsNorm, twoLayers } from './vision/blocks.ts';
import { describeText, insideVision } from './vision/text.ts';
import { TEXT_MODELS } from './vision/text-models.ts';
import { type TowerBlock, towerLayers } from './vision/tower-layers.ts';

/** Side of the image that assumptions speak of: these towers take any size. */
const SIDE = 1024;

interface Vision {
  readonly config: ConfigReader;
  readonly size: number;
  readonly depth: number;
  readonly heads: number;
  /** Values of one patch: channels × frames × side². */
  readonly pixels: number;
  readonly patch: number;
  readonly merge: number;
}

function readVision(
  outer: ConfigReader,
  defaults: { sizeKey: string; size: number; depth: number; patch: number },
): Vision {
  const config = outer.part('vision_config') ?? new ConfigReader({}, outer);
  const patch = config.side('patch_size', defaults.patch);
  return {
    config,
    size: config.count(defaults.sizeKey, defaults.size),
    depth: config.count('depth', defaults.depth),
    heads: config.count(['num_heads', 'num_attention_heads'], 16),
    pixels: config.count(['in_channels', 'in_chans'], 3) * config.side('temporal_patch_size', 2) * patch * patch,
    patch,
    merge: config.count('spatial_merge_size', 2) ** 2,
  };
}

const imageOf = ({ patch, merge }: Vision): ImageShape => {
  const count = Math.floor(SIDE / patch) ** 2;
  return { patches: count, tokens: Math.ceil(count / merge), pixels: `${SIDE} × ${SIDE}` };
};

/** Frequencies of half a head's features, kept twice, fp32. */
const rotaryBytes = ({ size, heads }: Vision): number => Math.floor(size / heads / 4) * 4 * 2;

/** Layers of the tower: one projection for queries, keys and values, heads turned in fp32. */
const blocks = (
  { config, size, depth, heads }: Vision,
  parts: {
    readonly inner: number;
    readonly fn: Activation;
    readonly form: NormForm;
    readonly names: TowerBlock['mlp']['names'];
  },
): IdleModules =>
  towerLayers('model.visual.blocks', depth, {
    size,
    heads,
    inner: parts.inner,
    fn: config.activation('hidden_act', parts.fn),
    form: parts.form,
    norms: ['norm1', 'norm2'],
    attention: {
      name: 'attn',
      fused: true,
      output: 'proj',
      qkvBias: true,
      outputBias: true,
      turns: { wide: 'before', flat: true },
    },
    mlp: { name: 'mlp', names: parts.names, bias: true },
  });

/** Text keys may lie flat in the outer config (files written before transformers 5). */
function wrap(
  config: ConfigReader,
  modelType: string,
  defaults: Readonly<Record<string, unknown>>,
  vision: Vision,
  idle: readonly IdleModules[],
): ModelDescription {
  const part = config.part('text_config');
  const source = part ?? config;
  const filled = new ConfigReader({ ...defaults, ...source.entries(), model_type: modelType }, config);
  const text = describeText(filled, config, TEXT_MODELS, { modelType }).description;
  return {
    ...insideVision(text, {
      idle,
      image: imageOf(vision),
      tied: config.flag('tie_word_embeddings', false) || (part?.flag('tie_word_embeddings', false) ?? false),
      bufferBytes: rotaryBytes(vision),
    }),
    // Positions have three parts for every row.
    rotaryTables: text.rotaryTables && { ...text.rotaryTables, perRow: true },
  };
}

const QWEN_2_TEXT = {
  vocab_size: 152064,
  hidden_size: 8192,
  intermediate_size: 29568,
  num_hidden_layers: 80,
  num_attention_heads: 64,
  num_key_value_heads: 8,
};

export const qwen2Vl: Architecture = {
  modelTypes: ['qwen2_vl'],
  source: 'transformers 5.17 models/qwen2_vl/modeling_qwen2_vl.py',
  describe: (config) => {
    const vision = readVision(config, { sizeKey: 'embed_dim', size: 1280, depth: 32, patch: 14 });
    const { size, merge } = vision;
    return wrap(config, 'qwen2', QWEN_2_TEXT, vision, [
      once('model.visual', patches('patch_embed.proj', size, vision.pixels, false)),
      blocks(vision, {
        inner: size * vision.config.count('mlp_ratio', 4),
        fn: 'quick_gelu',
        form: 'layer',
        names: ['fc1', 'fc2'],
      }),
      once('model.visual.merger', [
        layerNorm('ln_q', size),
        ...twoLayers('mlp', ['0', '2'], size * merge, size * merge, vision.config.count('hidden_size', 3584)),
      ]),
    ]);
  },
};

export const qwen25Vl: Architecture = {
  modelTypes: ['qwen2_5_vl'],
  source: 'transformers 5.17 models/qwen2_5_vl/modeling_qwen2_5_vl.py',
  describe: (config) => {
    const vision = readVision(config, { sizeKey: 'hidden_size', size: 3584, depth: 32, patch: 14 });
    const { size, merge } = vision;
    const inner = vision.config.count('intermediate_size', 3420);
    return wrap(config, 'qwen2', QWEN_2_TEXT, vision, [
      once('model.visual', patches('patch_embed.proj', size, vision.pixels, false)),
      blocks(vision, { inner, fn: 'silu', form: 'rms', names: ['gate_proj', 'up_proj', 'down_proj'] }),
      once('model.visual.merger', [
        rmsNorm('ln_q', size),
        ...twoLayers('mlp', ['0', '2'], size * merge, size * merge, vision.config.count('out_hidden_size', 3584)),
      ]),
    ]);
  },
};

const QWEN_3_TEXT = {
  vocab_size: 151936,
  hidden_size: 4096,
  intermediate_size: 22016,
  num_hidden_layers: 32,
  num_attention_heads: 32,
  num_key_value_heads: 32,
  head_dim: 128,
};

/** Qwen 3 VL and its kin: the text model inside each, and whether layers of the tower feed layers of the text (deepstack). */
const QWEN_3: Readonly<
  Record<
    string,
    { readonly text: string; readonly defaults: Readonly<Record<string, unknown>>; readonly deep: boolean }
  >
> = {
  qwen3_vl: { text: 'qwen3', defaults: QWEN_3_TEXT, deep: true },
  qwen3_vl_moe: {
    text: 'qwen3_moe',
    defaults: {
      vocab_size: 151936,
      intermediate_size: 5632,
      num_attention_heads: 16,
      num_key_value_heads: 16,
      moe_intermediate_size: 1408,
      num_experts_per_tok: 4,
      num_experts: 60,
      norm_topk_prob: true,
    },
    deep: true,
  },
  qwen3_5: { text: 'qwen3_5_text', defaults: {}, deep: false },
  qwen3_5_moe: { text: 'qwen3_5_moe_text', defaults: {}, deep: false },
};

const unnamed = (op: MoeOp): MoeOp => ({ ...op, targetNames: undefined });

export const qwen3Vl: Architecture = {
  modelTypes: Object.keys(QWEN_3),
  source:
    'transformers 5.17 models/qwen3_vl/modeling_qwen3_vl.py, models/qwen3_vl_moe, models/qwen3_5, models/qwen3_5_moe',
  describe: (config, modelType) => {
    const { text, defaults, deep } = QWEN_3[modelType]!;
    const vision = readVision(config, { sizeKey: 'hidden_size', size: 1152, depth: 27, patch: 16 });
    const { size, merge } = vision;
    const inner = vision.config.count('intermediate_size', 4304);
    const output = vision.config.count('out_hidden_size', 3584);
    const joined = size * merge;
    const listed = deep ? (vision.config.raw('deepstack_visual_indexes') ?? [8, 16, 24]) : [];
    if (!Array.isArray(listed)) config.refuse('deepstack_visual_indexes must be a list');
    const merger = (normed: number): readonly Op[] => [
      layerNorm('norm', normed),
      dense('linear_fc1', joined, joined),
      dense('linear_fc2', joined, output),
    ];
    const whole = wrap(config, text, defaults, vision, [
      once('model.visual', [
        ...patches('patch_embed.proj', size, vision.pixels, true),
        parameter('pos_embed.weight', vision.config.count('num_position_embeddings', 2304) * size),
      ]),
      blocks(vision, { inner, fn: 'gelu_pytorch_tanh', form: 'layer', names: ['linear_fc1', 'linear_fc2'] }),
      once('model.visual.merger', merger(size)),
      ...(deep
        ? [layers('model.visual.deepstack_merger_list', Array.isArray(listed) ? listed.length : 0, merger(joined))]
        : []),
    ]);
    // PEFT converts targets for text models that were renamed to this layout, not for models around them.
    return { ...whole, kinds: whole.kinds.map((ops) => ops.map((op) => (op.op === 'moe' ? unnamed(op) : op))) };
  },
};
