import type { Adapter, LinearState } from '../parameters.ts';
import { add, cast, dropout, multiply, offset, scale } from '../tape/primitives.ts';
import { type Node, Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';
import { plainLinear } from './linear.ts';
import { loraDelta } from './lora.ts';

type DoraAdapter = Extract<Adapter, { kind: 'lora' | 'dora' }>;

/**
 * PEFT's DoraLinearLayer: the norm of the whole updated weight is computed in every forward pass, through an identity
 * matrix of inFeatures², the dense update and a copy of the base weight; all of it ends with the call, the identity matrix
 * too, which the update's graph keeps.
 * Takes over `result`.
 */
export function dora(
  ctx: Context,
  adapter: DoraAdapter,
  state: LinearState,
  x: Tensor,
  result: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): Tensor {
  const { tape } = ctx;
  const dtype = adapter.a.dtype;
  const weightElements = shape.inFeatures * shape.outFeatures;
  const input = cast(tape, x, dtype);
  const dropped = dropout(tape, input, adapter.dropout);

  const { update, graph } = denseUpdate(ctx, adapter, shape);
  const updateCast = cast(tape, update, dtype);
  tape.drop(update);
  const frozen = state.quantised ? tape.alloc(weightElements, state.quantised.computeDtype) : null;
  const weight = state.quantised || state.weight!.dtype !== dtype ? tape.alloc(weightElements, dtype) : null;
  if (frozen) tape.release(frozen);
  const scaledUpdate = tape.alloc(weightElements, dtype);
  const updated = tape.alloc(weightElements, dtype);
  tape.release(scaledUpdate);
  const norm = tape.alloc(shape.outFeatures, dtype);
  tape.release(updated);

  const magnitude = adapter.magnitude!.tensor;
  const ratioNode = tape.node(shape.outFeatures, magnitude.dtype, () =>
    tape.give(magnitude.node!, tape.alloc(shape.outFeatures, magnitude.dtype)),
  );
  tape.save(ratioNode, norm);
  const ratio = new Tensor(
    tape.alloc(shape.outFeatures, magnitude.dtype),
    shape.outFeatures,
    magnitude.dtype,
    ratioNode,
  );
  const delta = loraDelta(ctx, adapter, tape.hold(dropped), shape, false);
  const baseResult = doraBase(ctx, adapter, state, dropped, result, shape);
  const less = offset(tape, ratio);
  const first = multiply(tape, less, baseResult);
  tape.drop(less);
  const turned = multiply(tape, ratio, delta);
  const second = scale(tape, turned);
  tape.drop(turned);
  const change = add(tape, first, second);
  tape.drop(first);
  tape.drop(second);
  tape.drop(delta);
  tape.drop(baseResult);
  tape.drop(ratio);
  tape.release(norm);
  if (weight) tape.release(weight);
  tape.drop(updateCast);
  tape.forget(graph);

  const sum = add(tape, result, change);
  tape.drop(change);
  tape.drop(dropped);
  tape.drop(input);
  const out = cast(tape, sum, result.dtype);
  tape.drop(sum);
  tape.drop(result);
  return out;
}

/** `lora_B(lora_A(eye)).T`; nobody runs its graph, which lasts as long as the update. */
function denseUpdate(
  ctx: Context,
  adapter: DoraAdapter,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): { readonly update: Tensor; readonly graph: readonly Node[] } {
  const { tape } = ctx;
  const eye = tape.alloc(shape.inFeatures * shape.inFeatures, adapter.a.dtype);
  const outer = tape.noGradStart();
  const identity = new Tensor(eye, shape.inFeatures * shape.inFeatures, adapter.a.dtype, null);
  const update = loraDelta(ctx, adapter, tape.hold(identity), shape, false);
  const graph = tape.noGradEnd(outer);
  tape.drop(identity);
  return { update: new Tensor(update.buffer, update.elements, update.dtype, null), graph };
}

/** Without dropout the result already computed; with it the base once more on the dropped input, without bias. */
function doraBase(
  ctx: Context,
  adapter: DoraAdapter,
  state: LinearState,
  dropped: Tensor,
  result: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): Tensor {
  const { tape } = ctx;
  if (adapter.dropout === 0) {
    if (!state.bias) return tape.hold(result);
    return add(tape, result, state.bias.tensor);
  }
  const dense = state.quantised
    ? new Tensor(tape.alloc(state.quantised.elements, dropped.dtype), state.quantised.elements, dropped.dtype, null)
    : cast(tape, state.weight!.tensor, dropped.dtype);
  const weight = {
    tensor: dense,
    dtype: dense.dtype,
    trainable: false,
  } as unknown as NonNullable<LinearState['weight']>;
  const out = plainLinear(ctx, { weight, bias: undefined }, dropped, { ...shape, form: 'linear' });
  tape.drop(dense);
  return out;
}
