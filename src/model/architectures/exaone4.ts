import type { ConfigReader } from '../config-reader.ts';
import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { type LlamaLike, llamaLine, readLlamaKeys } from './llama.ts';
import { add, gatedMlp, hiddenNorm, noPeftDefaults, selfAttention } from './parts.ts';

const layer = (keys: LlamaLike, turns: boolean): readonly Op[] => [
  { op: 'assign', input: 'hidden_states', output: 'residual' },
  selfAttention(keys.shape, { headNorm: 'rms', headNormAfterHeads: true, rotary: turns }),
  hiddenNorm('post_attention_layernorm', keys.hiddenSize),
  add('residual', 'hidden_states', 'hidden_states'),
  { op: 'assign', input: 'hidden_states', output: 'residual' },
  gatedMlp(keys.hiddenSize, keys.intermediateSize, keys.activation),
  hiddenNorm('post_feedforward_layernorm', keys.hiddenSize),
  add('residual', 'hidden_states', 'hidden_states'),
];

/** Which layers turn their heads, and whether any has a window: with windows, layers that see everything do not turn. */
export function exaoneWindows(
  config: ConfigReader,
  layers: number,
): { readonly turns: readonly boolean[]; readonly slides: boolean } {
  const windowed = config.raw('sliding_window') !== null;
  const pattern = config.raw('sliding_window_pattern');
  const types = config.layerNames('layer_types', layers, ['sliding_attention', 'full_attention']);
  if (!types && typeof pattern === 'string') config.refuse('an EXAONE pattern of letters without layer_types');
  const every = typeof pattern === 'string' ? 4 : config.count('sliding_window_pattern', 4);
  const slides = Array.from({ length: layers }, (_, index) =>
    types ? types[index] === 'sliding_attention' : windowed && (index + 1) % every !== 0,
  );
  return { turns: slides.map((sliding) => !windowed || sliding), slides: slides.includes(true) };
}

export const exaone4: Architecture = {
  modelTypes: ['exaone4'],
  source: 'transformers 5.17 models/exaone4/modeling_exaone4.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 16384,
      layers: 32,
      heads: 32,
      kvHeads: 32,
      vocab: 102400,
    });
    const { turns, slides } = exaoneWindows(config, keys.layers);
    return llamaLine(keys, {
      kinds: [layer(keys, true), layer(keys, false)],
      order: turns.map((turned) => (turned ? 0 : 1)),
      tied: config.flag('tie_word_embeddings', false),
      masks: slides ? 2 : 1,
      peft: noPeftDefaults,
    });
  },
};
