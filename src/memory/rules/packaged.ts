import type { ChunkScanOp, ConvolutionOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { cast, giveAs, keepOutput, scale } from '../tape/primitives.ts';
import { type Buffer, F32, type Tape, Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';

/** Tokens a chunk of fla's gated delta rule. */
const CHUNK = 64;

const spare = (tape: Tape, parts: readonly (readonly [elements: number, dtype: Tensor['dtype']])[]): Buffer[] =>
  parts.map(([elements, dtype]) => tape.alloc(elements, dtype));

const release = (tape: Tape, buffers: readonly Buffer[]): void => {
  for (const buffer of buffers) tape.release(buffer);
};

/** Gradients of the inputs that need one, made by a kernel in their own dtype and size. */
function giveEach(tape: Tape, inputs: readonly Tensor[]): void {
  for (const input of inputs) {
    if (input.node) giveAs(tape, input, tape.alloc(input.elements, input.dtype), input.elements, input.dtype);
  }
}

/**
 * fla's chunk_gated_delta_rule with norms of queries and keys inside: these normed, their inverse lengths, the values, the
 * summed decay, beta and one row of 64 a token and head are kept; the rest is made again in the backward pass.
 * Source: fla ops/gated_delta_rule/chunk.py.
 */
export function packagedDeltaRule(
  ctx: Context,
  shape: { readonly heads: number; readonly keyDim: number; readonly valueDim: number },
  inputs: readonly [query: Tensor, key: Tensor, value: Tensor, beta: Tensor, decay: Tensor],
): Tensor {
  const { tape, batch, tokens } = ctx;
  const [query, key, value, beta] = inputs;
  const lines = batch * tokens * shape.heads;
  const { dtype } = value;
  const states = batch * Math.ceil(tokens / CHUNK) * shape.heads * shape.keyDim * shape.valueDim;
  const kept = spare(tape, [
    [query.elements, dtype],
    [lines, F32],
    [key.elements, dtype],
    [lines, F32],
    [lines, F32],
    [lines * CHUNK, dtype],
  ]);
  const made: readonly (readonly [number, Tensor['dtype']])[] = [
    [key.elements, dtype],
    [value.elements, dtype],
    [states, dtype],
    [value.elements, dtype],
  ];
  const temporaries = spare(tape, made);
  const result = tape.alloc(value.elements, dtype);
  release(tape, temporaries);
  const node = inputs.some((input) => input.node)
    ? tape.node(value.elements, dtype, () => {
        const again = spare(tape, [
          ...made,
          [value.elements, dtype],
          [states, dtype],
          [query.elements, dtype],
          [key.elements, dtype],
          [key.elements, dtype],
          [lines, F32],
          [key.elements, dtype],
        ]);
        release(tape, again);
        giveEach(tape, inputs);
      })
    : null;
  for (const buffer of [...kept, value.buffer, beta.buffer]) tape.save(node, buffer);
  release(tape, kept);
  return new Tensor(result, value.elements, dtype, node);
}

/**
 * mamba_ssm's mamba_chunk_scan_combined: its inputs, its result and the summed decay are kept; states and products of chunks
 * are made in both passes. Source: mamba_ssm ops/triton/ssd_combined.py.
 */
export function packagedScan(ctx: Context, op: ChunkScanOp, state: OpState, frame: Frame): void {
  const { tape, batch, tokens } = ctx;
  const [logA, biasDt, skip] = state.scan!.map((parameter) => parameter.tensor) as [Tensor, Tensor, Tensor];
  const wide = cast(tape, logA, F32);
  const power = keepOutput(tape, wide);
  const rate = scale(tape, power);
  tape.drop(wide);
  tape.drop(power);
  const [x, dt, b, c] = [op.x, op.dt, op.b, op.c].map((name) => read(frame, name)) as [Tensor, Tensor, Tensor, Tensor];
  const chunks = Math.ceil(tokens / op.chunk);
  const lines = batch * chunks * op.chunk * op.heads;
  const states = batch * chunks * op.heads * op.headDim * op.stateSize;
  const products = batch * chunks * op.groups * op.chunk * op.chunk;
  const made: readonly (readonly [number, Tensor['dtype']])[] = [
    [lines, F32],
    [states, F32],
    [states, x.dtype],
    [products, F32],
  ];
  const decay = tape.alloc(lines, F32);
  const temporaries = spare(tape, made);
  const result = tape.alloc(x.elements, x.dtype);
  release(tape, temporaries);
  const inputs = [x, dt, rate, b, c, skip, biasDt];
  const node = inputs.some((input) => input.node)
    ? tape.node(x.elements, x.dtype, () => {
        const again = spare(tape, [
          ...made,
          [lines, F32],
          [states, F32],
          [states, x.dtype],
          [products, F32],
          [x.elements, x.dtype],
          [lines, F32],
        ]);
        release(tape, again);
        giveEach(tape, inputs);
      })
    : null;
  for (const buffer of [result, x.buffer, dt.buffer, decay, b.buffer, c.buffer]) tape.save(node, buffer);
  tape.release(decay);
  tape.drop(rate);
  for (const name of [op.x, op.b, op.c, op.dt]) done(ctx, frame, name);
  bind(ctx, frame, op.output, new Tensor(result, x.elements, x.dtype, node));
}

/** causal_conv1d_fn of the package: the activation is inside, only the input is kept. */
export function packagedConvolution(ctx: Context, op: ConvolutionOp, state: OpState, x: Tensor): Tensor {
  const { tape } = ctx;
  const inputs = [x, state.weight!.tensor, ...(op.bias ? [state.bias!.tensor] : [])];
  const node = inputs.some((input) => input.node) ? tape.node(x.elements, x.dtype, () => giveEach(tape, inputs)) : null;
  tape.save(node, x.buffer);
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}
