import type { Op } from '../ops.ts';
import type { Architecture } from './architecture.ts';
import { llamaLine, readLlamaKeys } from './llama.ts';
import { mambaMixer } from './mamba.ts';
import { WITHOUT_MAMBA_SSM } from './mamba2.ts';
import { call, gatedMlp, hiddenNorm, linear, moe, noPeftDefaults, preNormLayer, selfAttention } from './parts.ts';

export const jamba: Architecture = {
  modelTypes: ['jamba'],
  source: 'transformers 5.17 models/jamba/modeling_jamba.py',
  describe: (config) => {
    const keys = readLlamaKeys(config, {
      hidden: 4096,
      intermediate: 14336,
      layers: 32,
      heads: 32,
      kvHeads: 8,
      vocab: 65536,
    });
    const { hiddenSize } = keys;
    const rank = config.raw('mamba_dt_rank');
    const mixers: Op[] = [
      mambaMixer(
        {
          hiddenSize,
          inner: config.count('mamba_expand', 2) * hiddenSize,
          stateSize: config.count('mamba_d_state', 16),
          rank: rank === undefined || rank === 'auto' ? Math.ceil(hiddenSize / 16) : config.count('mamba_dt_rank', 1),
          kernel: config.count('mamba_d_conv', 4),
          bias: config.flag('mamba_proj_bias', false),
          convBias: config.flag('mamba_conv_bias', true),
          activation: keys.activation,
          norms: 'rms',
        },
        'mamba',
      ),
      selfAttention(keys.shape, { rotary: false }),
    ];
    const experts = config.count(['num_experts', 'num_local_experts'], 16);
    const sparse = call('feed_forward', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
      linear('router', 'hidden_states', 'router_logits', hiddenSize, experts),
      moe({
        name: '',
        router: 'router',
        logits: 'router_logits',
        hiddenSize,
        intermediateSize: keys.intermediateSize,
        experts,
        expertsPerToken: config.count('num_experts_per_tok', 2),
        normalise: false,
        targetNames: undefined,
        castWeights: true,
        activation: keys.activation,
      }),
    ]);
    const blocks: Op[] = [gatedMlp(hiddenSize, keys.intermediateSize, keys.activation, false, 'feed_forward'), sparse];
    /** One layer of every `period`, from `offset` on. */
    const every = (name: string, period: number, offset: number): ((index: number) => boolean) => {
      const [length, start] = [config.count(`${name}_period`, period), config.whole(`${name}_offset`, offset)];
      return (index) => index % length === start;
    };
    const [attends, isSparse] = [every('attn_layer', 8, 4), every('expert_layer', 2, 1)];
    const line = llamaLine(keys, {
      kinds: mixers.flatMap((mixer) =>
        blocks.map((block) =>
          preNormLayer(
            { norm: hiddenNorm('input_layernorm', hiddenSize), block: mixer },
            { norm: hiddenNorm('pre_ff_layernorm', hiddenSize), block },
          ),
        ),
      ),
      order: Array.from(
        { length: keys.layers },
        (_, index) => (attends(index) ? 2 : 0) + (experts > 1 && isSparse(index) ? 1 : 0),
      ),
      tied: config.flag('tie_word_embeddings', false),
      peft: noPeftDefaults,
    });
    config.assumptions.push(WITHOUT_MAMBA_SSM);
    return {
      ...line,
      final: [hiddenNorm('final_layernorm', hiddenSize)],
      rotaryTables: undefined,
      bufferBytes: 0,
    };
  },
};
