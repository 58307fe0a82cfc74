import type { ConfigReader } from '../config-reader.ts';
import type { ModelDescription, Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { scaledEmbedding } from './gemma.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { activation, add, call, gatedMlp, linear, multiply, noPeftDefaults, norm } from './parts.ts';
import { gatePerLayer, ownVector, type PerLayerInputs, perLayerEmbedding } from './per-layer-inputs.ts';
import { carriedNames, groupLayers, keyRoles, type LayerPlace, sharedKeyAttention } from './shared-keys.ts';

/** How many vectors a token has between layers, and what is done with their correction. */
interface AltUp {
  readonly hiddenSize: number;
  readonly streams: number;
  readonly scales: boolean;
}

interface Place extends LayerPlace {
  readonly intermediateSize: number;
  readonly sparse: boolean;
}

const wide = (name: string, input: string, output: string, size: number) => norm(name, input, output, size, 'rms_wide');

/** Vector `index` of all; they are alike, so which does not matter. */
const take = ({ hiddenSize, streams }: AltUp, all: string, output: string): Op => ({
  op: 'split',
  form: 'slices',
  input: all,
  of: streams * hiddenSize,
  outputs: [{ name: output, features: hiddenSize }],
});

/** `tanh(router(norm(x) * number).float())` in the input's dtype: the first use and the second of the same modules. */
function routers({ hiddenSize, streams }: AltUp): readonly [readonly Op[], readonly Op[]] {
  const normed = wide('router_norm', 'x', '$normed', hiddenSize);
  const routed = linear('modality_router', '$scaled', '$routed', hiddenSize, streams);
  const steps = (first: Op, second: Op): readonly Op[] => [
    first,
    { op: 'scale', input: '$normed', output: '$scaled' },
    second,
    { op: 'cast', like: 'fp32', input: '$routed', output: '$wide' },
    activation('tanh', '$wide', '$bent'),
    { op: 'cast', like: { value: 'x' }, input: '$bent', output: 'modalities' },
  ];
  return [steps(normed, routed), steps({ ...normed, sameAs: normed }, { ...routed, sameAs: routed })];
}

/** From all vectors to the predictions, and from those and what the blocks made of one to the corrected vectors. */
function altUp(shape: AltUp): { readonly predict: Op; readonly correct: Op } {
  const { streams, hiddenSize } = shape;
  const [first, second] = routers(shape);
  return {
    predict: call('altup', { hidden_states: 'hidden_states' }, { predictions: 'predictions' }, [
      take(shape, 'hidden_states', 'x'),
      ...first,
      linear('prediction_coefs', 'modalities', 'all_coefs', streams, streams ** 2),
      {
        op: 'alternating',
        step: 'predict',
        streams,
        hiddenSize,
        all: 'hidden_states',
        coefs: 'all_coefs',
        output: 'predictions',
      },
    ]),
    correct: call('altup', { predictions: 'predictions', activated: 'x' }, { corrected: 'corrected' }, [
      ...second,
      { ...linear('correction_coefs', 'modalities', 'all_coefs', streams, streams), bypassed: true },
      {
        op: 'alternating',
        step: 'correct',
        streams,
        hiddenSize,
        all: 'predictions',
        input: 'x',
        coefs: 'all_coefs',
        output: 'corrected',
      },
    ]),
  };
}

/** A small detour around attention, added to what entered it. */
const laurel = (size: number, rank: number): Op =>
  call('laurel', { normed: 'hidden_states' }, { out: 'laurel_output' }, [
    linear('linear_left', 'hidden_states', 'laurel_hidden_states', size, rank),
    linear('linear_right', 'laurel_hidden_states', 'laurel_hidden_states', rank, size),
    wide('post_laurel_norm', 'laurel_hidden_states', 'normed_laurel_hidden_states', size),
    add('hidden_states', 'normed_laurel_hidden_states', 'out'),
  ]);

/** The feed-forward block, its gate cut to the largest values in sparse layers. */
function feedForward(keys: LlamaLike, { intermediateSize, sparse }: Place): Op {
  const block = gatedMlp(keys.hiddenSize, intermediateSize, keys.activation);
  const ops = block.ops.flatMap((op): Op[] =>
    sparse && op.op === 'activation'
      ? [
          { op: 'gaussian_topk', size: intermediateSize, input: op.input, output: 'gate_proj' },
          { ...op, input: 'gate_proj' },
        ]
      : [op],
  );
  return { ...block, arguments: { attn_norm: 'x' }, results: { down_proj: 'attn_ffw' }, ops };
}

function layer(
  config: ConfigReader,
  keys: LlamaLike,
  place: Place,
  shape: AltUp,
  perLayer: PerLayerInputs,
): readonly Op[] {
  const size = keys.hiddenSize;
  const { predict, correct } = altUp(shape);
  const block = sharedKeyAttention(keys.shape, place, { bias: config.flag('attention_bias', false), input: 'normed' });
  const attend = block as Extract<Op, { op: 'call' }>;
  return [
    ownVector(perLayer),
    predict,
    take(shape, 'predictions', 'active_prediction'),
    wide('input_layernorm', 'active_prediction', 'normed', size),
    laurel(size, config.count('laurel_rank', 64)),
    { ...attend, results: { ...attend.results, attn_output: 'attn' } },
    wide('post_attention_layernorm', 'attn', 'attn', size),
    add('active_prediction', 'attn', 'attn_gated'),
    add('attn_gated', 'laurel_output', '$sum'),
    { op: 'scale', input: '$sum', output: 'attn_laurel' },
    wide('pre_feedforward_layernorm', 'attn_laurel', 'attn_norm', size),
    feedForward(keys, place),
    wide('post_feedforward_layernorm', 'attn_ffw', 'attn_ffw_norm', size),
    add('attn_laurel', 'attn_ffw_norm', 'activated'),
    correct,
    take(shape, 'corrected', '$first'),
    { op: 'copy', input: '$first', output: 'first_prediction' },
    ...(shape.scales
      ? [
          { op: 'parameter', name: 'altup.correct_output_scale', elements: size, output: 'scale' } satisfies Op,
          multiply('first_prediction', 'scale', 'first_prediction'),
        ]
      : [{ op: 'parameter', name: 'altup.correct_output_scale', elements: size } satisfies Op]),
    ...gatePerLayer(perLayer, 'first_prediction', keys.activation),
    {
      op: 'alternating',
      step: 'add',
      streams: shape.streams,
      hiddenSize: size,
      all: 'corrected',
      input: 'first_prediction',
      output: 'hidden_states',
    },
  ];
}

/** Every vector but the first through a projection of its own, brought to the first one's length; all of them together. */
function projected(
  shape: AltUp,
  from: (index: number) => readonly [readonly Op[], string],
  name: string,
): readonly Op[] {
  const others = Array.from({ length: shape.streams - 1 }, (_, index) => {
    const [ops, input] = from(index);
    const value = `stream_${index + 1}`;
    return [
      ...ops,
      linear(`${name}.${index}`, input, 'current', shape.hiddenSize, shape.hiddenSize),
      // Its squares have a name until the next one's; the product with the first one's length, and the quotient.
      { op: 'scale', input: 'current', output: '$squared' } satisfies Op,
      { op: 'scale', input: 'current', output: '$longer' } satisfies Op,
      { op: 'scale', input: '$longer', output: value } satisfies Op,
      { op: 'assign', input: value, output: 'current' } satisfies Op,
    ];
  });
  return others.flat();
}

function places(config: ConfigReader, keys: LlamaLike): readonly Place[] {
  const { layers } = keys;
  const sizes = config.raw('intermediate_size');
  const pattern = config.raw('activation_sparsity_pattern');
  const byDefault = layers > 10 ? 10 : 0;
  return keyRoles(config, layers, 5, config.whole('num_kv_shared_layers', 15)).map((place, index) => ({
    ...place,
    intermediateSize: Array.isArray(sizes) ? Number(sizes[index]) : keys.intermediateSize,
    sparse: Array.isArray(pattern) ? Number(pattern[index]) > 0 : index < byDefault,
  }));
}

/** `merged`: ops on `inputs_embeds` before the layers' own inputs are made. */
export const gemma3nText = (config: ConfigReader, merged: readonly Op[] = []): ModelDescription => {
  const sizes = config.raw('intermediate_size');
  const defaults = { hidden: 2048, intermediate: 16384, layers: 35, heads: 8, kvHeads: 2, headDim: 256, vocab: 262400 };
  const keys = readLlamaKeys(Array.isArray(sizes) ? config.without('intermediate_size') : config, {
    ...defaults,
    activation: 'gelu_pytorch_tanh',
    activationKeys: ['hidden_activation'],
  });
  const shape: AltUp = {
    hiddenSize: keys.hiddenSize,
    streams: config.count('altup_num_inputs', 4),
    scales: config.flag('altup_correct_scale', true),
  };
  const perLayer: PerLayerInputs = {
    hiddenSize: keys.hiddenSize,
    size: config.count('hidden_size_per_layer_input', 256),
    layers: keys.layers,
    vocab: config.count('vocab_size_per_layer_input', 262144),
    inPlace: true,
  };
  const order = places(config, keys);
  const { kinds, layers } = groupLayers(order, (place) => layer(config, keys, place, shape, perLayer));
  const streams = Array.from({ length: shape.streams - 1 }, (_, index) => `stream_${index + 1}`);
  const line = llamaLine(keys, {
    kinds,
    order: layers,
    tied: config.flag('tie_word_embeddings', true),
    softcap: config.raw('final_logit_softcapping') !== null && config.number('final_logit_softcapping', 30) > 0,
    rotaryPairs: 2,
    masks: 2,
    embeddingOps: [
      ...scaledEmbedding(keys),
      ...merged,
      ...perLayerEmbedding(perLayer),
      ...projected(shape, () => [[], 'inputs_embeds'], 'altup_projections'),
      { op: 'concatenate', inputs: ['inputs_embeds', ...streams], headMajor: false, output: 'hidden_states' },
    ],
    extraBufferBytes: 4 * (keys.layers + 4),
    peft: noPeftDefaults,
  });
  return {
    ...line,
    streams: shape.streams,
    final: [
      take(shape, 'hidden_states', 'stream_0'),
      ...projected(shape, () => [[take(shape, 'hidden_states', '$stream')], '$stream'], 'altup_unembed_projections'),
      { op: 'concatenate', inputs: ['stream_0', ...streams], headMajor: false, output: 'hidden_states' },
      {
        op: 'alternating',
        step: 'mean',
        streams: shape.streams,
        hiddenSize: keys.hiddenSize,
        all: 'hidden_states',
        output: 'hidden_states',
      },
      wide('norm', 'hidden_states', 'hidden_states', keys.hiddenSize),
    ],
    carriedLinger: true,
    carried: carriedNames(order),
    shares: ['per_layer_inputs'],
  };
};

export const gemma3n: Architecture = {
  modelTypes: ['gemma3n_text'],
  source: 'transformers 5.17 models/gemma3n/modeling_gemma3n.py',
  describe: (config) => gemma3nText(config),
};
