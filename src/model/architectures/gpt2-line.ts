import type { ConfigReader } from '../config-reader.ts';
import type { Activation, CallOp, ModelDescription, Op } from '../ops.ts';
import { add, dropout, hiddenNorm } from './parts.ts';

/** The keys of GPT-2's config under GPT-2's names; `activation` is the default of the model type. */
export function readGpt2Keys(config: ConfigReader, activation: Activation) {
  const hiddenSize = config.count(['n_embd', 'hidden_size'], 768);
  const headCount = config.count(['n_head', 'num_attention_heads'], 12);
  config.divisible(hiddenSize, 'n_embd', headCount, 'n_head');
  return {
    hiddenSize,
    headCount,
    layers: config.count(['n_layer', 'num_hidden_layers'], 12),
    positions: config.count(['n_positions', 'max_position_embeddings'], 1024),
    vocabSize: config.count('vocab_size', 50257),
    inner: config.count('n_inner', 4 * hiddenSize),
    fn: config.activation('activation_function', activation),
    residual: config.number('resid_pdrop', 0.1),
    embedding: config.number('embd_pdrop', 0.1),
    attention: config.number('attn_pdrop', 0.1),
  };
}

/** What GPT-2 and its relatives share around their attention: learned positions, norms before the blocks, a head without a bias. */
export interface Gpt2Line {
  readonly hiddenSize: number;
  readonly vocabSize: number;
  readonly positions: number;
  readonly layers: number;
  /** Dropout behind the embeddings. */
  readonly embedding: number;
  /** From `hidden_states` to `attn_output`. */
  readonly block: CallOp;
  readonly mlp: CallOp;
  readonly tied: boolean;
}

/** A description in the line of GPT-2; what a relative does otherwise is spread over it. */
export function gpt2Line(line: Gpt2Line): Omit<ModelDescription, 'peft' | 'bufferBytes'> {
  const { hiddenSize, vocabSize, positions, layers, embedding, block, mlp, tied } = line;
  const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };
  return {
    hiddenSize,
    vocabSize,
    layersPath: 'transformer.h',
    embedding: [
      { op: 'embedding', name: 'wte', rows: vocabSize, size: hiddenSize, by: 'tokens', output: 'inputs_embeds' },
      { op: 'embedding', name: 'wpe', rows: positions, size: hiddenSize, by: 'positions', output: 'position_embeds' },
      add('inputs_embeds', 'position_embeds', 'hidden_states'),
      ...(embedding > 0 ? [dropout(embedding, 'hidden_states', 'hidden_states')] : []),
    ],
    kinds: [
      [
        hold,
        hiddenNorm('ln_1', hiddenSize, 'layer'),
        block,
        add('attn_output', 'residual', 'hidden_states'),
        hold,
        hiddenNorm('ln_2', hiddenSize, 'layer'),
        { ...mlp, results: { hidden_states: 'feed_forward_hidden_states' } },
        add('residual', 'feed_forward_hidden_states', 'hidden_states'),
      ],
    ],
    layers: new Array<number>(layers).fill(0),
    final: [hiddenNorm('ln_f', hiddenSize, 'layer')],
    head: { name: 'lm_head', bias: false, tied, scaled: false, softcap: false },
    rotaryTables: undefined,
    masks: 1,
    alibi: false,
  };
}
