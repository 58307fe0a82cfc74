import type { IdleModules, Stack } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { ParameterPlan } from './parameters.ts';
import { dtypeCode, renew } from './parameters.ts';
import type { Context } from './rules/context.ts';
import { Buffer, type Dtype, F32, owner, Tape } from './tape/tape.ts';
import { Layers } from './walk/layers.ts';

const ACTIVATIONS = owner('activations');

/** What an image costs in layers of a vision tower, bytes. */
export interface TowerCost {
  /** Kept from the tower's forward pass to its backward pass. */
  readonly keptBytes: number;
  /** Above that at the highest point of either pass. */
  readonly transientBytes: number;
}

/** Walks the layers of a tower on `vectors` vectors, by the same rules as those of the language model. */
export function walkTower(
  { ops, count, runs }: IdleModules,
  vectors: number,
  values: PlanValues,
  plan: ParameterPlan,
): TowerCost {
  const { hiddenSize, rotaryDim } = runs!;
  renew(plan);
  const stack: Stack = {
    hiddenSize,
    layersPath: '',
    embedding: [],
    kinds: [ops],
    layers: new Array<number>(count).fill(0),
    final: [],
    rotaryTables: undefined,
    masks: 0,
  };
  const dtype = dtypeCode(values.dtype);
  const amp = values.mixedPrecision === 'no' ? undefined : dtypeCode(values.mixedPrecision);
  const tape = new Tape();
  const layers = new Layers(context(tape, plan, { vectors, dtype, amp, rotaryDim }, values), stack, {
    ...values.gradientCheckpointing,
    offload: false,
  });
  let current: { dtype: Dtype; needsGrad: boolean } = { dtype, needsGrad: values.method === 'full' };
  let kept = 0;
  let highest = 0;
  let backward = 0;
  for (let index = 0; index < count; index += 1) {
    const summary = layers.summary(index, current);
    highest = Math.max(highest, kept + summary.forward.peak);
    kept += summary.forward.end;
    backward = Math.max(0, summary.backward.peak);
    current = summary.output;
  }
  // Without gradients only the last result stays.
  if (!current.needsGrad) return { keptBytes: 0, transientBytes: highest };
  return { keptBytes: kept, transientBytes: Math.max(highest - kept, backward) };
}

function context(
  tape: Tape,
  plan: ParameterPlan,
  shape: {
    readonly vectors: number;
    readonly dtype: Dtype;
    readonly amp: Dtype | undefined;
    readonly rotaryDim: number;
  },
  { attnImplementation }: PlanValues,
): Context {
  return {
    tape,
    states: plan.states,
    batch: 1,
    tokens: shape.vectors,
    amp: shape.amp,
    attention: attnImplementation === 'eager' || attnImplementation === 'sdpa' ? attnImplementation : 'flash',
    fused: [],
    padded: false,
    hiddenDtype: shape.rotaryDim > 0 ? shape.dtype : F32,
    hookedEmbedding: false,
    prefixTokens: 0,
    constants: {
      rotaryElements: shape.vectors * shape.rotaryDim,
      rotary: new Buffer(0, ACTIVATIONS),
      mask: undefined,
      maskHeads: 1,
    },
    frozen: false,
    castCache: new Map(),
  };
}
