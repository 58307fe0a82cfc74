import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { activation, linear, noPeftDefaults } from './parts.ts';

/** Layers of the Llama line whose attention sees both ways. */
export const bothWays = (ops: readonly Op[]): readonly Op[] =>
  ops.map((op) => {
    if (op.op === 'call') return { ...op, ops: bothWays(op.ops) };
    return op.op === 'attention' ? { ...op, mask: 'padding' } : op;
  });

export const eurobert: Architecture = {
  modelTypes: ['eurobert'],
  source: 'transformers 5.17 models/eurobert/modeling_eurobert.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 768,
      intermediate: 3072,
      layers: 12,
      heads: 12,
      vocab: 128256,
    });
    const { hiddenSize } = keys;
    const bias = config.flag('attention_bias', false);
    const mlpBias = config.flag('mlp_bias', false);
    const late = config.word('classifier_pooling', 'late', ['bos', 'mean', 'late']) === 'late';
    const line = llamaLine(keys, {
      kinds: [bothWays(llamaLayer(keys, { qkvBias: bias, outputBias: bias }, mlpBias))],
      tied: config.flag('tie_word_embeddings', false),
      headBias: mlpBias,
      peft: noPeftDefaults,
    });
    return {
      ...line,
      form: 'masked',
      paddingMasks: true,
      classifier: {
        ops: [
          ...(late
            ? []
            : [{ op: 'first_token', size: hiddenSize, input: 'hidden_states', output: 'hidden_states' } as const]),
          linear('dense', 'hidden_states', 'x', hiddenSize, hiddenSize, true),
          activation('gelu', 'x', 'x'),
          linear('classifier', 'x', 'logits', hiddenSize, 2, true),
        ],
      },
    };
  },
};
