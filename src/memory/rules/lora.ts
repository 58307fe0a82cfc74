import type { Adapter } from '../parameters.ts';
import { add, cast, dropout, scale } from '../tape/primitives.ts';
import type { Tensor } from '../tape/tape.ts';
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
