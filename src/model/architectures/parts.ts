import type {
  Activation,
  AttentionOp,
  CallOp,
  LinearOp,
  MoeOp,
  NormForm,
  NormOp,
  Op,
  PeftDefaults,
  RotaryOp,
  SplitOp,
} from '../ops.ts';

/** Builders that more than one architecture uses. */

export const linear = (
  name: string,
  input: string,
  output: string,
  inFeatures: number,
  outFeatures: number,
  bias = false,
  form: LinearOp['form'] = 'linear',
): LinearOp => ({ op: 'linear', name, input, output, inFeatures, outFeatures, bias, form });

export const norm = (
  name: string,
  input: string,
  output: string,
  size: number,
  form: NormForm = 'rms',
  bias = form === 'layer',
): NormOp => ({ op: 'norm', name, input, output, size, form, bias });

export const add = (a: string, b: string, output: string): Op => ({ op: 'add', a, b, output });
export const multiply = (a: string, b: string, output: string): Op => ({ op: 'multiply', a, b, output });
export const heads = (input: string, output: string): Op => ({ op: 'heads', input, output });
export const activation = (fn: Activation, input: string, output: string): Op => ({
  op: 'activation',
  fn,
  input,
  output,
});
export const dropout = (p: number, input: string, output: string): Op => ({ op: 'dropout', p, input, output });
export const call = (
  name: string,
  args: Readonly<Record<string, string>>,
  results: Readonly<Record<string, string>>,
  ops: readonly Op[],
): CallOp => ({ op: 'call', name, arguments: args, results, ops });

export interface AttentionShape {
  readonly hiddenSize: number;
  readonly heads: number;
  readonly kvHeads: number;
  readonly headDim: number;
  readonly dropout: number;
  readonly softcap?: boolean;
  readonly eager?: AttentionOp['eager'];
  readonly window?: number | undefined;
  /** Keys and values are repeated to the number of query heads; false: the kernel broadcasts them. */
  readonly repeats?: boolean;
}

export const attention = (shape: AttentionShape, output = 'attn_output'): AttentionOp => ({
  op: 'attention',
  q: 'query_states',
  k: 'key_states',
  v: 'value_states',
  output,
  heads: shape.heads,
  kvHeads: shape.kvHeads,
  headDim: shape.headDim,
  dropout: shape.dropout,
  softcap: shape.softcap ?? false,
  repeats: shape.repeats ?? true,
  eager: shape.eager ?? 'upcast',
  window: shape.window,
});

/** How an architecture's rotary embedding differs from Llama's. */
export type RotaryForm = Pick<RotaryOp, 'pairs' | 'wide' | 'tables' | 'positions' | 'flat' | 'turning'>;

export const rotary = (
  shape: AttentionShape,
  rotaryDim = shape.headDim,
  alwaysJoin = false,
  form: RotaryForm = {},
): Op => ({
  ...form,
  op: 'rotary',
  q: 'query_states',
  k: 'key_states',
  qHeads: shape.heads,
  kHeads: shape.kvHeads,
  headDim: shape.headDim,
  rotaryDim,
  join: alwaysJoin || rotaryDim < shape.headDim,
});

export interface SelfAttentionOptions {
  readonly qkvBias?: boolean;
  readonly outputBias?: boolean;
  readonly outputName?: string;
  readonly rotaryDim?: number;
  readonly rotary?: boolean;
  /** Norm over each head of q and k. */
  readonly headNorm?: NormForm;
  /** Gemma 3 norms q and k after all three projections, Qwen 3 each right after its own. */
  readonly headNormAfterHeads?: boolean;
  /** After the projections too, but before their views as heads are transposed (Cohere). */
  readonly headNormBeforeHeads?: boolean;
  readonly headNormAfterRotary?: boolean;
  readonly headNormNames?: readonly [q: string, k: string];
  /** Each head has norm weights of its own. */
  readonly headNormPerHead?: boolean;
  readonly rotaryForm?: RotaryForm;
  /** The turned queries are multiplied by a number a position (Ministral 3). */
  readonly scaledQueries?: boolean;
  /** Norm over the whole projection, before the heads are told apart (OLMo 2, OLMoE). */
  readonly projectionNorm?: NormForm;
  readonly clamp?: boolean;
  /** The three projections come first, then their views as heads (OLMo). */
  readonly lateHeads?: boolean;
  /** The turned features are joined with the rest even when there is none (Phi 3, StarCoder has no rest at all). */
  readonly alwaysJoin?: boolean;
  /** p of a dropout on the block's result. */
  readonly outputDropout?: number;
}

/** `self_attn` of the Llama line: separate q, k, v projections, rotary embedding, attention, output projection. */
export function selfAttention(shape: AttentionShape, options: SelfAttentionOptions = {}, name = 'self_attn'): CallOp {
  const { hiddenSize, heads: count, kvHeads, headDim } = shape;
  const early: Op[] = [];
  const late: Op[] = [];
  const views: Op[] = [];
  const isEarly = !(options.headNormAfterHeads || options.headNormBeforeHeads || options.headNormAfterRotary);
  const turned: Op[] = options.scaledQueries ? [{ op: 'scale', input: 'query_states', output: 'query_states' }] : [];
  const [qNorm, kNorm] = options.headNormNames ?? ['q_norm', 'k_norm'];
  for (const [proj, state, groups, normName] of [
    ['q_proj', 'query_states', count, qNorm],
    ['k_proj', 'key_states', kvHeads, kNorm],
    ['v_proj', 'value_states', kvHeads, undefined],
  ] as const) {
    const features = groups * headDim;
    const project = (output: string): Op =>
      linear(proj, 'hidden_states', output, hiddenSize, features, options.qkvBias ?? false);
    const whole = normName && options.projectionNorm;
    const perHead = normName && options.headNorm;
    const ofHeads = (normed: string, input: string): Op => ({
      ...norm(normed, input, state, headDim, options.headNorm),
      ...(options.headNormPerHead ? { groups } : {}),
    });
    if (whole) early.push(project(`$${state}`), norm(normName, `$${state}`, state, features, options.projectionNorm));
    else if (perHead && isEarly) early.push(project(`$${state}`), ofHeads(normName, `$${state}`));
    else early.push(project(state));
    // Each is viewed as heads right after its projection, so that the copy in the backward pass comes right before its product.
    if (perHead && options.headNormBeforeHeads) late.push(ofHeads(normName, state));
    if (options.headNormBeforeHeads) views.push(heads(state, state));
    else (options.projectionNorm || options.lateHeads ? late : early).push(heads(state, state));
    if (perHead && options.headNormAfterHeads) late.push(ofHeads(normName, state));
    if (perHead && options.headNormAfterRotary) turned.push(ofHeads(normName, state));
  }
  const clamps: Op[] = options.clamp
    ? ['query_states', 'key_states', 'value_states'].map((input) => ({ op: 'clamp', input }))
    : [];
  return call(name, { hidden_states: 'hidden_states' }, { attn_output: 'hidden_states', attn_weights: '_' }, [
    ...early,
    ...clamps,
    ...late,
    ...views,
    ...(options.rotary === false ? [] : [rotary(shape, options.rotaryDim, options.alwaysJoin, options.rotaryForm)]),
    ...turned,
    attention(shape),
    linear(
      options.outputName ?? 'o_proj',
      'attn_output',
      'attn_output',
      count * headDim,
      hiddenSize,
      options.outputBias ?? false,
    ),
    ...(options.outputDropout ? [dropout(options.outputDropout, 'attn_output', 'attn_output')] : []),
  ]);
}

/** `down_proj(act(gate_proj(x)) * up_proj(x))`. */
export const gatedMlp = (
  hiddenSize: number,
  intermediateSize: number,
  fn: Activation,
  bias = false,
  name = 'mlp',
  names: { readonly gate: string; readonly up: string; readonly down: string } = PROJECTION_NAMES,
): CallOp =>
  call(name, { hidden_states: 'x' }, { down_proj: 'hidden_states' }, [
    linear(names.gate, 'x', '$gate', hiddenSize, intermediateSize, bias),
    activation(fn, '$gate', '$activated'),
    linear(names.up, 'x', '$up', hiddenSize, intermediateSize, bias),
    multiply('$activated', '$up', '$product'),
    linear(names.down, '$product', 'down_proj', intermediateSize, hiddenSize, bias),
  ]);

/** `value.chunk(n)` / `split`: gradients are concatenated. */
export const split = (
  input: string,
  outputs: readonly (readonly [string, number])[],
  form: SplitOp['form'] = 'chunk',
): Op => ({ op: 'split', form, input, outputs: outputs.map(([name, features]) => ({ name, features })) });

/** One linear layer for gate and up projection, `up * act(gate)`, and the way back (Phi 3, GLM). */
export const fusedGatedMlp = (
  hiddenSize: number,
  intermediateSize: number,
  fn: Activation,
  names: { readonly up: string; readonly down: string } = { up: 'gate_up_proj', down: 'down_proj' },
  bias = false,
): CallOp =>
  call('mlp', { hidden_states: 'hidden_states' }, { down_proj: 'hidden_states' }, [
    linear(names.up, 'hidden_states', 'up_states', hiddenSize, 2 * intermediateSize, bias),
    split('up_states', [
      ['gate', intermediateSize],
      ['up_states', intermediateSize],
    ]),
    activation(fn, 'gate', '$activated'),
    multiply('up_states', '$activated', 'up_states'),
    linear(names.down, 'up_states', 'down_proj', intermediateSize, hiddenSize, bias),
  ]);

const between = (
  names: readonly [string, string],
  ops: (first: string, second: string) => readonly Op[],
): readonly Op[] => ops(...names);

/** Two linear layers with an activation between them. */
export const plainMlp = (
  names: readonly [string, string],
  hiddenSize: number,
  intermediateSize: number,
  fn: Activation,
  options: {
    readonly bias: boolean;
    readonly form?: LinearOp['form'];
    readonly dropout?: number;
    readonly name?: string;
    /** One expression: the values between the layers have no name. */
    readonly unnamed?: boolean;
  },
): CallOp =>
  call(options.name ?? 'mlp', { hidden_states: 'hidden_states' }, { hidden_states: 'hidden_states' }, [
    ...between(options.unnamed ? ['$up', '$activated'] : ['hidden_states', 'hidden_states'], (up, activated) => [
      linear(names[0], 'hidden_states', up, hiddenSize, intermediateSize, options.bias, options.form),
      activation(fn, up, activated),
      linear(names[1], activated, 'hidden_states', intermediateSize, hiddenSize, options.bias, options.form),
    ]),
    ...(options.dropout ? [dropout(options.dropout, 'hidden_states', 'hidden_states')] : []),
  ]);

/** Projections of one expert as separate layers (Qwen, OLMoE). */
export const PROJECTION_NAMES = { router: 'gate', gate: 'gate_proj', up: 'up_proj', down: 'down_proj' } as const;

export const moe = (
  shape: Omit<MoeOp, 'op' | 'input' | 'output'> & { readonly input?: string; readonly output?: string },
): MoeOp => ({
  op: 'moe',
  input: 'hidden_states',
  output: 'hidden_states',
  ...shape,
});

const hold: Op = { op: 'assign', input: 'hidden_states', output: 'residual' };

/** Residual stream of the Llama line: norm, block, add; twice. `after` norms stand between block and add (Gemma 2). */
export const preNormLayer = (
  first: { readonly norm: NormOp; readonly block: Op; readonly after?: readonly Op[] },
  second: { readonly norm: NormOp; readonly block: Op; readonly after?: readonly Op[] },
): readonly Op[] => [
  hold,
  first.norm,
  first.block,
  ...(first.after ?? []),
  add('residual', 'hidden_states', 'hidden_states'),
  hold,
  second.norm,
  second.block,
  ...(second.after ?? []),
  add('residual', 'hidden_states', 'hidden_states'),
];

export const hiddenNorm = (name: string, size: number, form: NormForm = 'rms', bias?: boolean): NormOp =>
  norm(name, 'hidden_states', 'hidden_states', size, form, bias);

/** `inputs_embeds` keeps its name until the model's forward ends; the layers run on `hidden_states`. */
export const embedTokens = (name: string, rows: number, size: number): readonly Op[] => [
  { op: 'embedding', name, rows, size, by: 'tokens', output: 'inputs_embeds' },
  { op: 'assign', input: 'inputs_embeds', output: 'hidden_states' },
];

export const noPeftDefaults: PeftDefaults = { lora: undefined, ia3: undefined, ia3Feedforward: undefined };
export const peftDefaults = (
  lora: readonly string[] | undefined,
  ia3?: readonly string[],
  ia3Feedforward?: readonly string[],
): PeftDefaults => ({ lora, ia3, ia3Feedforward });

/** Inverse frequencies, fp32, kept twice (`inv_freq`, `original_inv_freq`), for `tables` rotary modules. */
export const rotaryBufferBytes = (dim: number, tables = 1): number => (dim / 2) * 4 * 2 * tables;
