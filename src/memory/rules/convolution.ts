import type { ConvolutionOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { cast, slice } from '../tape/primitives.ts';
import { type Node, Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import type { Context } from './context.ts';
import { packagedConvolution } from './packaged.ts';

/**
 * causal_conv1d_fn as transformers writes it without the causal_conv1d package: the input in the weight's dtype, a depthwise
 * convolution that is `kernel − 1` tokens too long, a view of its beginning, the activation, the input's dtype again.
 */
export function convolution(ctx: Context, op: ConvolutionOp, state: OpState, x: Tensor): Tensor {
  if (ctx.fused.includes('convolution')) return packagedConvolution(ctx, op, state, x);
  const { tape, amp, batch, tokens } = ctx;
  const typed = op.castsInput ? cast(tape, x, state.weight!.dtype) : tape.hold(x);
  const dtype = amp ?? typed.dtype;
  const input = cast(tape, typed, dtype);
  tape.drop(typed);
  const weight = cast(tape, state.weight!.tensor, dtype);
  const bias = state.bias ? cast(tape, state.bias.tensor, dtype) : null;
  const elements = batch * op.channels * (tokens + op.kernel - 1);
  let node: Node | null = null;
  if (input.node || weight.node || bias?.node) {
    node = tape.node(elements, dtype, () => {
      const toInput = input.node ? tape.alloc(input.elements, dtype) : null;
      const toWeight = weight.node ? tape.alloc(weight.elements, dtype) : null;
      const toBias = bias?.node ? tape.alloc(bias.elements, dtype) : null;
      if (toBias) tape.give(bias!.node!, toBias);
      if (toWeight) tape.give(weight.node!, toWeight);
      if (toInput) tape.give(input.node!, toInput);
    });
    tape.save(node, input.buffer);
    tape.save(node, weight.buffer);
  }
  const whole = new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
  tape.drop(input);
  tape.drop(weight);
  if (bias) tape.drop(bias);
  const cut = slice(tape, whole, x.elements, false);
  tape.drop(whole);
  const activated = op.activation ? activate(ctx, op.activation, cut) : tape.hold(cut);
  tape.drop(cut);
  const out = op.castsInput ? cast(tape, activated, x.dtype) : tape.hold(activated);
  tape.drop(activated);
  return out;
}
