import type { ChunkScanOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import {
  add,
  cast,
  concatenate,
  giveAs,
  keepInput,
  keepOutput,
  multiply,
  outer,
  pad,
  repeat,
  runningSum,
  scale,
  slice,
  sumTo,
} from '../tape/primitives.ts';
import { F32, type Tape, Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';
import { packagedScan } from './packaged.ts';

/**
 * transformers' mamba2_chunk_scan, which runs where the mamba_ssm package is not installed: outer products over whole chunks
 * that are then summed. What it keeps is small; the products themselves, forward and backward, are not.
 */
export function chunkScan(ctx: Context, op: ChunkScanOp, state: OpState, frame: Frame): void {
  if (ctx.fused.includes('scan')) {
    packagedScan(ctx, op, state, frame);
    return;
  }
  const { tape, batch, tokens } = ctx;
  const { heads, headDim, stateSize, chunk } = op;
  const [logA, biasDt, skip] = state.scan!.map((parameter) => parameter.tensor) as [Tensor, Tensor, Tensor];
  const count = Math.ceil(tokens / chunk);
  const rows = batch * count * chunk;
  const lines = rows * heads;
  const then = (x: Tensor, f: (x: Tensor) => Tensor): Tensor => {
    const y = f(x);
    tape.drop(x);
    return y;
  };

  // A = -exp(A_log.float()), one number a head.
  const rate = then(
    then(cast(tape, logA, F32), (x) => keepOutput(tape, x)),
    (x) => scale(tape, x),
  );
  // Step sizes: one number a token and head.
  const shifted = then(cast(tape, biasDt, read(frame, op.dt).dtype), (x) => add(tape, read(frame, op.dt), x));
  const step = then(
    then(shifted, (x) => keepInput(tape, x)),
    (x) => keepInput(tape, x),
  );

  const wideX = cast(tape, read(frame, op.x), F32);
  const spread = (name: string): Tensor =>
    then(cast(tape, read(frame, name), F32), (x) => copies(tape, x, heads / op.groups));
  const [firstB, firstC] = [spread(op.b), spread(op.c)];
  const residual = then(pad(tape, wideX, lines * headDim), (x) => multiply(tape, skip, x));
  const wideStep = (): Tensor => cast(tape, step, F32);
  const firstX = then(wideStep(), (dt) => multiply(tape, wideX, dt));
  tape.drop(wideX);
  const firstA = then(wideStep(), (dt) => multiply(tape, rate, dt));
  const [x, a, b, c] = [
    pad(tape, firstX, lines * headDim),
    pad(tape, firstA, lines),
    pad(tape, firstB, lines * stateSize),
    pad(tape, firstC, lines * stateSize),
  ];
  for (const tensor of [firstX, firstA, firstB, firstC]) tape.drop(tensor);

  const total = runningSum(tape, a);
  const pairs = lines * chunk;
  const mask = then(segmentSum(ctx, a, pairs), (y) => keepOutput(tape, y));
  const scores = then(outer(tape, c, b, pairs * stateSize), (y) => sumTo(tape, y, pairs));
  const mixing = then(multiply(tape, scores, mask), (y) => sumTo(tape, y, pairs));
  const within = then(outer(tape, mixing, x, pairs * headDim), (y) => sumTo(tape, y, lines * headDim));

  const last = slice(tape, total, lines / chunk, false);
  const decay = then(
    then(last, (y) => add(tape, total, y)),
    (y) => keepOutput(tape, y),
  );
  const decayedB = multiply(tape, b, decay);
  const stateElements = (lines / chunk) * headDim * stateSize;
  const own = then(outer(tape, decayedB, x, lines * headDim * stateSize), (y) => sumTo(tape, y, stateElements));
  const oneState = batch * heads * headDim * stateSize;
  const initial = new Tensor(tape.alloc(oneState, F32), oneState, F32, null);
  const states = then(own, (y) => concatenate(tape, [initial, y]));
  const steps = batch * heads * (count + 1);
  const decayChunk = then(
    then(
      then(slice(tape, total, lines / chunk, false), (y) => pad(tape, y, steps)),
      (y) => segmentSum(ctx, y, steps * (count + 1)),
    ),
    (y) => keepOutput(tape, y),
  );
  const carried = then(outer(tape, decayChunk, states, oneState * (count + 1) ** 2), (y) =>
    sumTo(tape, y, oneState * (count + 1)),
  );
  const before = slice(tape, carried, stateElements, false);
  tape.drop(states);
  const decayOut = keepOutput(tape, total);
  const read2 = outer(tape, c, before, lines * headDim * stateSize);
  const across = then(sumTo(tape, read2, lines * headDim), (y) => multiply(tape, y, decayOut));
  const sum = add(tape, within, across);
  const whole = then(sum, (y) => add(tape, y, residual));
  const out =
    rows > batch * tokens ? then(whole, (y) => slice(tape, y, batch * tokens * heads * headDim, false)) : whole;
  for (const tensor of [
    rate,
    step,
    residual,
    x,
    a,
    b,
    c,
    total,
    mask,
    scores,
    mixing,
    within,
    decay,
    decayedB,
    initial,
    decayChunk,
    carried,
    before,
    decayOut,
    read2,
    across,
  ]) {
    tape.drop(tensor);
  }
  for (const name of [op.x, op.b, op.c, op.dt]) done(ctx, frame, name);
  bind(ctx, frame, op.output, out);
}

/** repeat_interleave, also when there is nothing to repeat: always a copy. */
function copies(tape: Tape, x: Tensor, times: number): Tensor {
  if (times > 1) return repeat(tape, x, times);
  const parent = x.node;
  const node = parent
    ? tape.node(x.elements, x.dtype, (grad) => {
        grad.refs += 1;
        tape.give(parent, grad);
      })
    : null;
  return new Tensor(tape.alloc(x.elements, x.dtype), x.elements, x.dtype, node);
}

/** Sums over all segments: expanded, masked, summed, masked. */
function segmentSum(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const filled = masked(tape, x, elements);
  const summed = runningSum(tape, filled);
  tape.drop(filled);
  const out = masked(tape, summed, elements);
  tape.drop(summed);
  return out;
}

function masked(tape: Tape, x: Tensor, elements: number): Tensor {
  const parent = x.node;
  const node = parent
    ? tape.node(elements, x.dtype, () => {
        const full = tape.alloc(elements, x.dtype);
        giveAs(tape, x, full, elements, x.dtype);
      })
    : null;
  if (node) tape.save(node, null);
  return new Tensor(tape.alloc(elements, x.dtype), elements, x.dtype, node);
}
