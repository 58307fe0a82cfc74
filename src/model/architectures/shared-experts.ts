import type { Activation, Op, Routing } from '../ops.ts';
import { add, call, gatedMlp, moe, PROJECTION_NAMES } from './parts.ts';

/** Experts beside which a dense layer of `shared` features runs for every token (DeepSeek, GLM 4.5). */
export const expertsWithShared = (options: {
  readonly hiddenSize: number;
  readonly intermediateSize: number;
  readonly experts: number;
  readonly expertsPerToken: number;
  readonly shared: number;
  readonly normalise: boolean;
  readonly routing: Routing;
  readonly activation: Activation;
}): Op =>
  call('mlp', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
    { op: 'assign', input: 'hidden_states', output: 'residuals' },
    moe({
      name: '',
      router: 'gate',
      hiddenSize: options.hiddenSize,
      intermediateSize: options.intermediateSize,
      experts: options.experts,
      expertsPerToken: options.expertsPerToken,
      normalise: options.normalise,
      routing: options.routing,
      targetNames: PROJECTION_NAMES,
      castWeights: false,
      activation: options.activation,
    }),
    {
      ...gatedMlp(options.hiddenSize, options.shared, options.activation, false, 'shared_experts'),
      arguments: { residuals: 'x' },
      results: { down_proj: '$shared' },
    },
    add('hidden_states', '$shared', 'hidden_states'),
  ]);
