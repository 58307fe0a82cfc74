import type { ConfigReader } from '../config-reader.ts';
import type { Activation, Op, Routing } from '../ops.ts';
import { add, call, gatedMlp, moe, PROJECTION_NAMES } from './parts.ts';

const wideSum: readonly Op[] = [
  { op: 'cast', like: 'fp32', input: 'hidden_states', output: '$wide' },
  { op: 'cast', like: 'fp32', input: '$shared', output: '$other' },
  add('$wide', '$other', '$sum'),
  { op: 'cast', like: { value: 'residuals' }, input: '$sum', output: 'hidden_states' },
];

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
  /** PEFT reaches the stacked weights by the names they had as layers of their own; false: not in this family. */
  readonly named?: boolean;
  /** The two results are added in fp32 (Hunyuan 3). */
  readonly addsWide?: boolean;
  /** On the sum, inside the block (A.X K1). */
  readonly after?: readonly Op[];
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
      targetNames: options.named === false ? undefined : PROJECTION_NAMES,
      castWeights: false,
      activation: options.activation,
    }),
    {
      ...gatedMlp(options.hiddenSize, options.shared, options.activation, false, 'shared_experts'),
      arguments: { residuals: 'x' },
      results: { down_proj: '$shared' },
    },
    ...(options.addsWide ? wideSum : [add('hidden_states', '$shared', 'hidden_states')]),
    ...(options.after ?? []),
  ]);

/** A share of experts read from the keys that DeepSeek V3 and its kin use. */
export function readSharedExperts(
  config: ConfigReader,
  keys: { readonly hiddenSize: number; readonly activation: Activation },
  defaults: {
    readonly size: number;
    /** undefined: the file has to say it. */
    readonly experts?: number | undefined;
    readonly chosen?: number | undefined;
    readonly shared?: number | undefined;
    readonly groups: number;
    readonly normalise: boolean;
  },
): Op {
  const size = config.count('moe_intermediate_size', defaults.size);
  const experts = ['n_routed_experts', 'num_experts', 'num_local_experts'];
  const shared = ['n_shared_experts', 'num_shared_experts'];
  if (defaults.experts === undefined && !(config.has(...experts) && config.has(...shared))) {
    config.refuse('the config has to say how many experts there are, n_routed_experts and n_shared_experts');
  }
  return expertsWithShared({
    hiddenSize: keys.hiddenSize,
    intermediateSize: size,
    experts: config.count(experts, defaults.experts ?? 1),
    expertsPerToken: config.count('num_experts_per_tok', defaults.chosen ?? 1),
    shared: size * config.count(shared, defaults.shared ?? 1),
    normalise: config.flag('norm_topk_prob', defaults.normalise),
    routing: { form: 'sigmoid_groups', groups: config.count('n_group', defaults.groups) },
    activation: keys.activation,
  });
}

/** The first layers dense, the others sparse: `first_k_dense_replace`, or `mlp_layer_types`. 0: sparse, 1: dense. */
export function denseFirst(config: ConfigReader, layers: number, byDefault: number): readonly number[] {
  const named = config.layerNames('mlp_layer_types', layers, ['dense', 'sparse']);
  if (named) return named.map((name) => (name === 'dense' ? 1 : 0));
  const dense = config.whole('first_k_dense_replace', byDefault);
  return Array.from({ length: layers }, (_, index) => (index < dense ? 1 : 0));
}
