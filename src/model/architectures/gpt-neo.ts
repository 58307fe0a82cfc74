import { error } from '../../core/index.ts';
import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { gpt2Line } from './gpt2-line.ts';
import { attention, call, dropout, heads, linear, peftDefaults, plainMlp } from './parts.ts';

/** Layers that `attention_types` (`[[["global", "local"], 12]]`) counts up; undefined: not in that form. */
function countLayers(types: unknown): number | undefined {
  if (!Array.isArray(types)) return undefined;
  let layers = 0;
  for (const entry of types) {
    if (!Array.isArray(entry) || !Array.isArray(entry[0]) || !Number.isSafeInteger(entry[1])) return undefined;
    layers += entry[0].length * (entry[1] as number);
  }
  return layers;
}

function checkLayers(config: ConfigReader, layers: number): void {
  const counted = countLayers(config.raw('attention_types') ?? [[['global', 'local'], 12]]);
  if (counted === layers) return;
  config.problems.push(
    error('bad-model-config', `attention_types of the model config describe ${counted ?? 'no'} layers, not ${layers}`, {
      help: 'correct attention_types or num_layers in config.json',
    }),
  );
}

export const gptNeo: Architecture = {
  modelTypes: ['gpt_neo'],
  source: 'transformers 5.17 models/gpt_neo/modeling_gpt_neo.py',
  describe: (config) => {
    const hiddenSize = config.count('hidden_size', 2048);
    const headCount = config.count(['num_heads', 'num_attention_heads'], 16);
    const layers = config.count(['num_layers', 'num_hidden_layers'], 24);
    const positions = config.count('max_position_embeddings', 2048);
    const vocabSize = config.count('vocab_size', 50257);
    const inner = config.count('intermediate_size', 4 * hiddenSize);
    const fn = config.activation('activation_function', 'gelu_new');
    const residual = config.number('resid_dropout', 0);
    const embedding = config.number('embed_dropout', 0);
    config.divisible(hiddenSize, 'hidden_size', headCount, 'num_heads');
    checkLayers(config, layers);
    const shape = {
      hiddenSize,
      heads: headCount,
      kvHeads: headCount,
      headDim: Math.floor(hiddenSize / headCount),
      dropout: config.number('attention_dropout', 0),
      eager: 'fp32' as const,
    };
    const project = (name: string, output: string): Op => linear(name, 'hidden_states', output, hiddenSize, hiddenSize);
    const inside = call(
      'attention',
      { hidden_states: 'hidden_states' },
      { attn_output: 'attn_output', attn_weights: '_' },
      [
        project('q_proj', 'query_states'),
        project('k_proj', 'key_states'),
        project('v_proj', 'value_states'),
        ...['query_states', 'key_states', 'value_states'].map((state) => heads(state, state)),
        attention(shape),
        linear('out_proj', 'attn_output', 'attn_output', hiddenSize, hiddenSize, true),
        ...(residual > 0 ? [dropout(residual, 'attn_output', 'attn_output')] : []),
      ],
    );
    const block = call('attn', { hidden_states: 'hidden_states' }, { attn_output: 'attn_output', _: '_' }, [inside]);
    const mlp = plainMlp(['c_fc', 'c_proj'], hiddenSize, inner, fn, { bias: true, dropout: residual });
    return {
      ...gpt2Line({
        hiddenSize,
        vocabSize,
        positions,
        layers,
        embedding,
        block,
        mlp,
        tied: config.flag('tie_word_embeddings', true),
      }),
      // Every layer has a causal mask of its own, one byte a pair of positions.
      bufferBytes: layers * positions ** 2,
      namesWeights: true,
      kernels: ['flash'],
      peft: peftDefaults(['q_proj', 'v_proj'], ['q_proj', 'v_proj', 'c_proj'], ['c_proj']),
    };
  },
};
