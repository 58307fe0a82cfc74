import type { Adapter } from '../parameters.ts';
import { share } from '../tape/gradients.ts';
import { add, cast, dropout, scale } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';
import { plainLinear } from './linear.ts';

type LoraAdapter = Extract<Adapter, { kind: 'lora' | 'dora' }>;

/**
 * PEFT's lora.Linear.forward: the input in the adapter's dtype, two small layers, a number, a sum in the wider dtype, the
 * base's dtype again. Takes over `result`.
 */
export function lora(
  ctx: Context,
  adapter: LoraAdapter,
  x: Tensor,
  result: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
): Tensor {
  const { tape } = ctx;
  if (ctx.fused.includes('lora') && result.dtype === x.dtype) return fusedLora(ctx, adapter, x, result);
  const input = cast(tape, x, adapter.a.dtype);
  const dropped = dropout(tape, input, adapter.dropout);
  const scaled = loraDelta(ctx, adapter, dropped, shape, true);
  const sum = add(tape, result, scaled);
  tape.drop(scaled);
  tape.drop(result);
  tape.drop(input);
  const out = cast(tape, sum, result.dtype);
  tape.drop(sum);
  return out;
}

/** One function for base and factors (Unsloth's LoRA_W and its kin): the 16-bit input is kept, the update is added where the result lies. */
function fusedLora(ctx: Context, adapter: LoraAdapter, x: Tensor, result: Tensor): Tensor {
  const { tape } = ctx;
  const leaves = [adapter.a, adapter.b].flatMap((factor) => factor.tensor.node ?? []);
  const { node: base } = result;
  const node = tape.node(result.elements, result.dtype, (grad) => {
    for (const leaf of leaves) tape.give(leaf, tape.alloc(leaf.elements, leaf.dtype));
    if (base) tape.give(base, share(grad));
  });
  tape.save(node, x.buffer);
  return new Tensor(result.buffer, result.elements, result.dtype, node);
}

/** `lora_B(lora_A(x)) * scaling`; takes over `x`. */
export function loraDelta(
  ctx: Context,
  adapter: LoraAdapter,
  x: Tensor,
  shape: { readonly inFeatures: number; readonly outFeatures: number },
  scaled: boolean,
): Tensor {
  const { tape } = ctx;
  const rank = adapter.a.rows;
  const down = plainLinear(ctx, { weight: adapter.a, bias: undefined }, x, {
    inFeatures: shape.inFeatures,
    outFeatures: rank,
    form: 'linear',
  });
  tape.drop(x);
  const up = plainLinear(ctx, { weight: adapter.b, bias: undefined }, down, {
    inFeatures: rank,
    outFeatures: shape.outFeatures,
    form: 'linear',
  });
  tape.drop(down);
  if (!scaled) return up;
  const out = scale(tape, up);
  tape.drop(up);
  return out;
}
