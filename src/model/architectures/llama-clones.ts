import type { NormForm } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLayer, llamaLine, readLlamaKeys } from './llama.ts';
import { hiddenNorm, noPeftDefaults } from './parts.ts';

/** What differs from Llama, model type by model type. */
const CLONES: Readonly<Record<string, { vocab: number; norm?: NormForm; bias?: boolean }>> = {
  Yi: { vocab: 64000 },
  xverse: { vocab: 100278 },
  aquila: { vocab: 100008 },
  orion: { vocab: 84608, norm: 'layer' },
  internlm: { vocab: 103168, bias: true },
};

/** Models published with a copy of Llama's code before their makers used Llama's own class. */
export const llamaClones: Architecture = {
  modelTypes: Object.keys(CLONES),
  source:
    'the code published with 01-ai/Yi-6B, xverse/XVERSE-7B, BAAI/AquilaChat2-7B, OrionStarAI/Orion-14B-Base, internlm/internlm-7b',
  ownCode: true,
  describe: (config, modelType) => {
    const { vocab, norm = 'rms', bias: byDefault = false } = CLONES[modelType]!;
    const keys = readLlamaKeys(config, { hidden: 4096, intermediate: 11008, layers: 32, heads: 32, vocab });
    const bias = config.flag(modelType === 'internlm' ? 'bias' : 'attention_bias', byDefault);
    return {
      ...llamaLine(keys, {
        kinds: [llamaLayer(keys, { qkvBias: bias, outputBias: bias }, false, norm)],
        tied: config.flag('tie_word_embeddings', false),
        peft: noPeftDefaults,
      }),
      final: [hiddenNorm('norm', keys.hiddenSize, norm)],
    };
  },
};
