import type { Activation, CallOp, IdleModules, NormForm, Op } from '../../ops.ts';
import {
  activation,
  add,
  attention,
  call,
  heads,
  hiddenNorm,
  linear,
  multiply,
  type RotaryForm,
  rotary,
  split,
} from '../parts.ts';

/** One layer of a vision tower: a transformer block without a mask, on the vectors of an image. */
export interface TowerBlock {
  readonly size: number;
  readonly inner: number;
  readonly heads: number;
  readonly fn: Activation;
  readonly form: NormForm;
  readonly norms: readonly [first: string, second: string];
  readonly attention: {
    readonly name: string;
    /** One projection for queries, keys and values, `qkv`, with a bias; absent: one each. */
    readonly fused?: boolean;
    readonly output: string;
    readonly qkvBias: boolean;
    readonly outputBias: boolean;
    readonly turns?: RotaryForm;
    /** Norms over the whole projections of queries and keys. */
    readonly norms?: boolean;
  };
  readonly mlp: {
    readonly name: string;
    /** Two layers, or gate, up and down. */
    readonly names: readonly [string, string] | readonly [string, string, string];
    readonly bias: boolean;
  };
  /** Names of vectors by which each block's result is multiplied (InternVL). */
  readonly scales?: readonly [string, string];
}

function attend({ size, heads: count, attention: shape }: TowerBlock): CallOp {
  const headShape = { hiddenSize: size, heads: count, kvHeads: count, headDim: Math.floor(size / count), dropout: 0 };
  const states = ['query_states', 'key_states', 'value_states'];
  const turned: readonly Op[] = shape.turns ? [rotary(headShape, headShape.headDim, false, shape.turns)] : [];
  const views = states.map((state) => heads(state, state));
  const projected: readonly Op[] = shape.fused
    ? [
        linear('qkv', 'hidden_states', '$qkv', size, 3 * size, shape.qkvBias),
        split(
          '$qkv',
          states.map((state) => [state, size] as const),
        ),
        ...turned,
        ...views,
      ]
    : [
        ...['q', 'k', 'v'].map((letter, index) =>
          linear(`${letter}_proj`, 'hidden_states', states[index]!, size, size, shape.qkvBias),
        ),
        ...(shape.norms
          ? ['q', 'k'].map((letter, index) => ({
              ...hiddenNorm(`${letter}_norm`, size),
              input: states[index]!,
              output: states[index]!,
            }))
          : []),
        ...views,
        ...turned,
      ];
  return call(shape.name, { hidden_states: 'hidden_states' }, { attn_output: 'hidden_states' }, [
    ...projected,
    { ...attention(headShape), mask: 'padding' },
    linear(shape.output, 'attn_output', 'attn_output', size, size, shape.outputBias),
  ]);
}

function feedForward({ size, inner, fn, mlp: { name, names, bias } }: TowerBlock): CallOp {
  const [first, second, third] = names;
  const steps: readonly Op[] =
    third === undefined
      ? [
          linear(first, 'x', '$up', size, inner, bias),
          activation(fn, '$up', '$activated'),
          linear(second, '$activated', 'out', inner, size, bias),
        ]
      : [
          linear(first, 'x', '$gate', size, inner, bias),
          activation(fn, '$gate', '$activated'),
          linear(second, 'x', '$up', size, inner, bias),
          multiply('$activated', '$up', '$product'),
          linear(third, '$product', 'out', inner, size, bias),
        ];
  return call(name, { hidden_states: 'x' }, { out: 'hidden_states' }, steps);
}

function blockOps(block: TowerBlock): readonly Op[] {
  const scaled = (name: string | undefined): readonly Op[] =>
    name
      ? [
          { op: 'parameter', name, elements: block.size, output: 'scale' },
          multiply('scale', 'hidden_states', 'hidden_states'),
        ]
      : [];
  const half = (normName: string, inner: Op, scale: string | undefined): readonly Op[] => [
    { op: 'assign', input: 'hidden_states', output: 'residual' },
    hiddenNorm(normName, block.size, block.form),
    inner,
    ...scaled(scale),
    add('residual', 'hidden_states', 'hidden_states'),
  ];
  return [
    ...half(block.norms[0], attend(block), block.scales?.[0]),
    ...half(block.norms[1], feedForward(block), block.scales?.[1]),
  ];
}

/** `count` equal layers of a tower, which run when a row has an image. */
export const towerLayers = (path: string, count: number, block: TowerBlock): IdleModules => ({
  path: `${path}.0`,
  ops: blockOps(block),
  count,
  runs: { hiddenSize: block.size, rotaryDim: block.attention.turns ? Math.floor(block.size / block.heads) : 0 },
});
