import type { Activation, Op } from '../ops.ts';
import { activation, add, call, linear, multiply, norm } from './parts.ts';

/** A second token table with a small vector for every layer (Gemma 3n, Gemma 4). */
export interface PerLayerInputs {
  readonly hiddenSize: number;
  /** Features of one layer's vector. */
  readonly size: number;
  readonly layers: number;
  readonly vocab: number;
  /** The projection is multiplied in place (Gemma 3n). */
  readonly inPlace: boolean;
}

/** From `inputs_embeds` to `per_layer_inputs`, which the layers read. */
export const perLayerEmbedding = ({ hiddenSize, size, layers, vocab, inPlace }: PerLayerInputs): readonly Op[] => [
  {
    op: 'embedding',
    name: 'embed_tokens_per_layer',
    rows: vocab,
    size: layers * size,
    by: 'tokens',
    scaled: true,
    output: 'per_layer_inputs',
  },
  call('', { inputs_embeds: 'inputs_embeds', per_layer_inputs: 'looked' }, { out: 'per_layer_inputs' }, [
    linear('per_layer_model_projection', 'inputs_embeds', '$projected', hiddenSize, layers * size),
    { op: 'scale', input: '$projected', output: 'per_layer_projection', ...(inPlace ? { inPlace } : {}) },
    norm('per_layer_projection_norm', 'per_layer_projection', 'per_layer_projection', size, 'rms_wide'),
    add('per_layer_projection', 'looked', '$sum'),
    { op: 'scale', input: '$sum', output: 'out' },
  ]),
];

/** The layer's own vector of `per_layer_inputs`. */
export const ownVector = ({ size, layers }: PerLayerInputs): Op => ({
  op: 'split',
  form: 'slices',
  input: 'per_layer_inputs',
  of: layers * size,
  outputs: [{ name: 'per_layer_input', features: size }],
});

/** `norm(projection(act(gate(x)) * vector))`, in place of `value`. */
export const gatePerLayer = ({ hiddenSize, size }: PerLayerInputs, value: string, fn: Activation): readonly Op[] => [
  linear('per_layer_input_gate', value, value, hiddenSize, size),
  activation(fn, value, value),
  multiply(value, 'per_layer_input', value),
  linear('per_layer_projection', value, value, size, hiddenSize),
  norm('post_per_layer_input_norm', value, value, hiddenSize, 'rms_wide'),
];
