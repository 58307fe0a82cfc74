import type { SelectiveScanOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { add, batchedMatmul, cast, keepInput, keepOutput, multiply, outer, scale, select } from '../tape/primitives.ts';
import { rounds } from '../tape/rounds.ts';
import { type Dtype, F32, Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';

/**
 * transformers' mamba_selective_scan, which runs where the mamba_ssm package is not installed: decay and input of the whole
 * sequence in fp32 (batch × channels × tokens × states), then a loop over the tokens that keeps every state. The backward pass
 * of each token's view of the whole makes a whole again.
 */
export function selectiveScan(ctx: Context, op: SelectiveScanOp, state: OpState, frame: Frame): void {
  const { tape } = ctx;
  const [logA, skip] = state.scan!.map((parameter) => parameter.tensor) as [Tensor, Tensor];
  const then = (x: Tensor, f: (x: Tensor) => Tensor): Tensor => {
    const y = f(x);
    tape.drop(x);
    return y;
  };
  const x = read(frame, op.x);
  const rate = then(
    then(cast(tape, logA, F32), (y) => keepOutput(tape, y)),
    (y) => scale(tape, y),
  );
  const step = stepSizes(ctx, op, read(frame, op.dt));

  const whole = x.elements * op.stateSize;
  const decay = then(outer(tape, rate, step, whole), (y) => keepOutput(tape, y));
  const discrete = then(cast(tape, read(frame, op.b), F32), (y) => outer(tape, step, y, whole));
  const input = then(cast(tape, x, F32), (y) => multiply(tape, discrete, y));
  const scanned = scan(ctx, op, decay, input, read(frame, op.c), x.dtype);

  const skipped = then(cast(tape, skip, F32), (y) => multiply(tape, x, y));
  const sum = add(tape, scanned, skipped);
  tape.drop(skipped);
  const opened = keepInput(tape, read(frame, op.gate));
  const out = multiply(tape, sum, opened);
  for (const tensor of [opened, sum, scanned, input, discrete, decay, step, rate]) tape.drop(tensor);
  for (const name of [op.x, op.dt, op.b, op.c, op.gate]) done(ctx, frame, name);
  bind(ctx, frame, op.output, out);
}

/** `softplus(dt + bias)`; the bias goes to fp32 and back. */
function stepSizes(ctx: Context, op: SelectiveScanOp, dt: Tensor): Tensor {
  const { tape } = ctx;
  const bias = ctx.states.get(op.step)?.linear?.bias;
  const typed = bias ? cast(tape, bias.tensor, dt.dtype) : undefined;
  const shifted = typed ? add(tape, dt, typed) : tape.hold(dt);
  if (typed) tape.drop(typed);
  const out = keepInput(tape, shifted);
  tape.drop(shifted);
  return out;
}

/** `state = decay[t] * state + input[t]; output[t] = state @ c[t]`, the outputs stacked. */
function scan(ctx: Context, op: SelectiveScanOp, decay: Tensor, input: Tensor, c: Tensor, dtype: Dtype): Tensor {
  const { tape, batch, tokens } = ctx;
  const oneState = batch * op.channels * op.stateSize;
  const [outputSize, cSize] = [batch * op.channels, batch * op.stateSize];
  const product = ctx.amp ?? dtype;
  let state = new Tensor(tape.alloc(oneState, dtype), oneState, dtype, null);
  let output: Tensor | undefined;
  const list = rounds(tape, tokens, () => {
    const part = select(tape, decay, oneState);
    const kept = multiply(tape, part, state);
    tape.drop(part);
    const given = select(tape, input, oneState);
    const next = add(tape, kept, given);
    tape.drop(kept);
    tape.drop(given);
    tape.drop(state);
    state = next;
    const typed = cast(tape, next, dtype);
    const narrow = cast(tape, typed, product);
    tape.drop(typed);
    const selected = select(tape, c, cSize);
    const factor = cast(tape, selected, product);
    tape.drop(selected);
    const result = batchedMatmul(tape, narrow, factor, outputSize);
    tape.drop(narrow);
    tape.drop(factor);
    if (output) tape.drop(output);
    output = result;
    return select(tape, result, outputSize);
  });
  if (output) tape.drop(output);
  const parts = list.results;
  const elements = outputSize * tokens;
  const node = parts.some((part) => part.node)
    ? tape.node(elements, product, (grad) => {
        for (const part of parts) {
          if (!part.node) continue;
          grad.refs += 1;
          tape.give(part.node, grad);
        }
      })
    : null;
  const stacked = new Tensor(tape.alloc(elements, product), elements, product, node);
  tape.drop(state);
  list.end();
  return stacked;
}
