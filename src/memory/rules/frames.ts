import type { FramesOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { cast } from '../tape/primitives.ts';
import { Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read, weightFor } from './context.ts';

/** nn.Conv1d over frames: the input and the weight are kept; features come in the weight's dtype, as part of the batch. */
export function frames(ctx: Context, op: FramesOp, state: OpState, frame: Frame): void {
  const { tape, amp, batch } = ctx;
  const entered = batch * op.frames * op.inChannels;
  const source = op.input === undefined ? features(ctx, entered, state) : tape.hold(read(frame, op.input));
  const input = cast(tape, source, amp ?? source.dtype);
  tape.drop(source);
  const weight = weightFor(ctx, state.weight!);
  const bias = weightFor(ctx, state.bias!);
  const { dtype } = input;
  const elements = batch * op.frames * op.outChannels;
  const node =
    input.node || weight.node
      ? tape.node(elements, dtype, () => {
          const toInput = input.node ? tape.alloc(input.elements, dtype) : null;
          const toWeight = weight.node ? tape.alloc(weight.elements, dtype) : null;
          const toBias = bias.node ? tape.alloc(bias.elements, dtype) : null;
          if (toBias) tape.give(bias.node!, toBias);
          if (toWeight) tape.give(weight.node!, toWeight);
          if (toInput) tape.give(input.node!, toInput);
        })
      : null;
  tape.save(node, input.buffer);
  tape.save(node, weight.buffer);
  const out = new Tensor(tape.alloc(elements, dtype), elements, dtype, node);
  for (const tensor of [input, weight, bias]) tape.drop(tensor);
  if (op.input !== undefined) done(ctx, frame, op.input);
  bind(ctx, frame, op.output, out);
}

function features({ tape }: Context, elements: number, state: OpState): Tensor {
  const { dtype } = state.weight!;
  return new Tensor(tape.alloc(elements, dtype), elements, dtype, null);
}
