import type { DeltaRuleOp } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import {
  add,
  assignInto,
  batchedMatmul,
  cast,
  copy,
  keepInput,
  keepOutput,
  multiply,
  offset,
  pad,
  runningSum,
  scale,
  select,
  slice,
  solveTriangular,
  sumTo,
} from '../tape/primitives.ts';
import { rounds } from '../tape/rounds.ts';
import { F32, Tensor } from '../tape/tape.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';
import { packagedDeltaRule } from './packaged.ts';

/** Tokens a chunk. */
const CHUNK = 64;

/**
 * transformers' torch_chunk_gated_delta_rule, which runs where the fla package is not installed: everything in fp32, a
 * triangular system per chunk, then a scan over the chunks whose every state is kept. The decay's arithmetic on one number a
 * head and token comes first.
 */
export function deltaRule(ctx: Context, op: DeltaRuleOp, state: OpState, frame: Frame): void {
  const { tape } = ctx;
  const decay = decayOf(ctx, state, read(frame, op.decay));
  bind(ctx, frame, '_g', decay);
  const inputs = {
    query: read(frame, op.query),
    key: read(frame, op.key),
    value: read(frame, op.value),
    beta: read(frame, op.beta),
    decay,
  };
  const { query, key, value, beta } = inputs;
  const out = ctx.fused.includes('delta_rule')
    ? packagedDeltaRule(ctx, op, [query, key, value, beta, decay])
    : chunks(ctx, op, inputs);
  for (const name of [op.query, op.key, op.value, op.beta, op.decay]) done(ctx, frame, name);
  bind(ctx, frame, op.output, out);
  void tape;
}

/** `-A_log.float().exp() * softplus(a.float() + dt_bias)`. */
function decayOf(ctx: Context, state: OpState, a: Tensor): Tensor {
  const { tape } = ctx;
  const log = cast(tape, state.weight!.tensor, F32);
  const exponent = keepOutput(tape, log);
  tape.drop(log);
  const negated = scale(tape, exponent);
  tape.drop(exponent);
  const wide = cast(tape, a, F32);
  const shifted = add(tape, wide, state.bias!.tensor);
  tape.drop(wide);
  const soft = keepInput(tape, shifted);
  tape.drop(shifted);
  const out = multiply(tape, negated, soft);
  tape.drop(negated);
  tape.drop(soft);
  return out;
}

interface Inputs {
  readonly query: Tensor;
  readonly key: Tensor;
  readonly value: Tensor;
  readonly beta: Tensor;
  readonly decay: Tensor;
}

function chunks(ctx: Context, op: DeltaRuleOp, inputs: Inputs): Tensor {
  const { tape, batch, tokens } = ctx;
  const dtype = inputs.query.dtype;
  const count = Math.ceil(tokens / CHUNK);
  const lines = batch * op.heads;
  const rows = lines * count * CHUNK;
  /** Reads `x` and lets go of it. */
  const then = (x: Tensor, f: (x: Tensor) => Tensor): Tensor => {
    const y = f(x);
    tape.drop(x);
    return y;
  };
  const both = (a: Tensor, b: Tensor, f: (a: Tensor, b: Tensor) => Tensor): Tensor => {
    const y = f(a, b);
    tape.drop(a);
    tape.drop(b);
    return y;
  };
  const wide = (x: Tensor): Tensor => (x.dtype === F32 ? copy(tape, x, false) : cast(tape, x, F32));

  // fp32, heads before tokens.
  let [query, key, value, beta, decay] = [inputs.query, inputs.key, inputs.value, inputs.beta, inputs.decay].map(
    wide,
  ) as [Tensor, Tensor, Tensor, Tensor, Tensor];
  query = then(query, (x) => unitLength(ctx, x, op.keyDim));
  key = then(key, (x) => unitLength(ctx, x, op.keyDim));
  query = then(query, (x) => scale(tape, x));
  {
    const padded = [
      pad(tape, query, rows * op.keyDim),
      pad(tape, key, rows * op.keyDim),
      pad(tape, value, rows * op.valueDim),
    ];
    for (const x of [query, key, value]) tape.drop(x);
    [query, key, value] = padded as [Tensor, Tensor, Tensor];
    const small = [pad(tape, beta, rows), pad(tape, decay, rows)];
    for (const x of [beta, decay]) tape.drop(x);
    [beta, decay] = small as [Tensor, Tensor];
  }
  const valueBeta = multiply(tape, value, beta);
  const keyBeta = multiply(tape, key, beta);
  const total = runningSum(tape, decay);
  tape.drop(decay);

  // Within the chunks.
  const square = rows * CHUNK;
  let pairwise = outerDifference(ctx, total, square);
  pairwise = then(pairwise, (x) => masked(ctx, x));
  pairwise = then(pairwise, (x) => keepOutput(tape, x));
  const system = then(batchedMatmul(tape, keyBeta, key, square), (x) => multiply(tape, x, pairwise));
  const intra = then(batchedMatmul(tape, query, key, square), (x) => multiply(tape, x, pairwise));
  const decayedKey = then(keepOutput(tape, total), (x) => multiply(tape, keyBeta, x));
  const newValues = solveTriangular(tape, system, valueBeta);
  const keyDecay = solveTriangular(tape, system, decayedKey);
  const stateSize = lines * op.keyDim * op.valueDim;
  let recurrent = new Tensor(tape.alloc(stateSize, F32), stateSize, F32, null);
  let whole = new Tensor(tape.alloc(newValues.elements, F32), newValues.elements, F32, null);
  {
    const decayed = then(keepOutput(tape, total), (x) => multiply(tape, query, x));
    tape.drop(query);
    query = decayed;
    const remaining = then(
      then(
        then(slice(tape, total, rows / CHUNK, false), (x) => difference(ctx, x, total)),
        (x) => keepOutput(tape, x),
      ),
      (x) => multiply(tape, key, x),
    );
    tape.drop(key);
    key = remaining;
  }
  const chunkDecay = then(select(tape, total, rows / CHUNK), (x) => keepOutput(tape, x));

  // Over the chunks.
  const [keyPart, valuePart] = [lines * CHUNK * op.keyDim, lines * CHUNK * op.valueDim];
  let fresh: Tensor | undefined;
  let inter: Tensor | undefined;
  rounds(tape, count, () => {
    const given = select(tape, newValues, valuePart);
    const predicted = then(select(tape, keyDecay, keyPart), (x) => batchedMatmul(tape, x, recurrent, valuePart));
    const corrected = both(given, predicted, (a, b) => add(tape, a, b));
    if (fresh) tape.drop(fresh);
    fresh = corrected;
    const across = then(select(tape, query, keyPart), (x) => batchedMatmul(tape, x, recurrent, valuePart));
    if (inter) tape.drop(inter);
    inter = across;
    const within = then(select(tape, intra, lines * CHUNK * CHUNK), (x) =>
      batchedMatmul(tape, x, corrected, valuePart),
    );
    whole = assignInto(
      tape,
      whole,
      then(within, (x) => add(tape, across, x)),
    );
    const kept = then(select(tape, chunkDecay, lines), (x) => multiply(tape, recurrent, x));
    const update = then(select(tape, key, keyPart), (x) => batchedMatmul(tape, x, corrected, stateSize));
    const next = both(kept, update, (a, b) => add(tape, a, b));
    tape.drop(recurrent);
    recurrent = next;
    return undefined;
  });
  tape.drop(recurrent);
  const cut = then(whole, (x) => slice(tape, x, lines * tokens * op.valueDim, true));
  const out = then(cut, (x) => (dtype === F32 ? copy(tape, x, false) : cast(tape, x, dtype)));
  out.buffer.headMajor = false;
  for (const x of [
    query,
    key,
    value,
    beta,
    valueBeta,
    keyBeta,
    total,
    pairwise,
    system,
    intra,
    decayedKey,
    newValues,
    keyDecay,
    chunkDecay,
  ]) {
    tape.drop(x);
  }
  if (fresh) tape.drop(fresh);
  if (inter) tape.drop(inter);
  return out;
}

/** `x * rsqrt((x * x).sum(-1) + eps)`. */
function unitLength(ctx: Context, x: Tensor, size: number): Tensor {
  const { tape } = ctx;
  const squared = multiply(tape, x, x);
  const summed = sumTo(tape, squared, x.elements / size);
  tape.drop(squared);
  const shifted = offset(tape, summed);
  tape.drop(summed);
  const inverse = keepOutput(tape, shifted, 2);
  tape.drop(shifted);
  const out = multiply(tape, x, inverse);
  tape.drop(inverse);
  return out;
}

/** `x[..., :, None] - x[..., None, :]`. */
function outerDifference(ctx: Context, x: Tensor, elements: number): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent
    ? tape.node(elements, F32, () => {
        // The subtracted one is negated first; both are summed to x's size.
        const negated = tape.alloc(elements, F32);
        const first = tape.alloc(x.elements, F32);
        const second = tape.alloc(x.elements, F32);
        tape.release(negated);
        tape.give(parent, second);
        tape.give(parent, first);
      })
    : null;
  return new Tensor(tape.alloc(elements, F32), elements, F32, node);
}

/** `a - b`, a broadcast to b's size. */
function difference(ctx: Context, a: Tensor, b: Tensor): Tensor {
  return add(ctx.tape, b, a);
}

/** masked_fill with a mask of one chunk. */
function masked(ctx: Context, x: Tensor): Tensor {
  const { tape } = ctx;
  const parent = x.node;
  const node = parent ? tape.node(x.elements, F32, () => tape.give(parent, tape.alloc(x.elements, F32))) : null;
  if (node) tape.save(node, null);
  return new Tensor(tape.alloc(x.elements, F32), x.elements, F32, node);
}
