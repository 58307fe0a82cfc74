import type { RotaryOp } from '../../model/index.ts';
import { add, cast, concatenate, constant, multiply, scale, slice } from '../tape/primitives.ts';
import { F32, type Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';
import { turnInPlace } from './fused-kernels.ts';
import { turnComplex, turnHalves } from './rotary-halves.ts';

/** cos and sin: the same for every product, or made for each (then it lets go of them). */
interface Tables {
  readonly cos: Tensor;
  readonly sin: Tensor;
  readonly make: (() => Tensor) | undefined;
}

/** apply_rotary_pos_emb: `q * cos + rotate_half(q) * sin` for q, then k; features beyond rotaryDim are joined unchanged. */
export function rotary(ctx: Context, op: RotaryOp, frame: Frame): void {
  const { tape } = ctx;
  const tables = tablesOf(ctx, op, frame);
  if (op.k === '') {
    const turned = turn(ctx, read(frame, op.q), op, tables);
    bind(ctx, frame, op.q, turned);
    return;
  }
  const [q, k] = [read(frame, op.q), read(frame, op.k)];
  if (!op.wide) {
    const [turnedQ, turnedK] = [turn(ctx, q, op, tables), turn(ctx, k, op, tables)];
    bind(ctx, frame, op.q, turnedQ);
    bind(ctx, frame, op.k, turnedK);
    return;
  }
  // Both stay in fp32 until both are done.
  const first = (x: Tensor): Tensor => (op.wide === 'before' ? cast(tape, x, F32) : tape.hold(x));
  const entering = [first(q), first(k)];
  const turned = entering.map((x) => turn(ctx, x, op, tables));
  const narrow = [cast(tape, turned[0]!, q.dtype), cast(tape, turned[1]!, k.dtype)];
  for (const tensor of [...entering, ...turned]) tape.drop(tensor);
  bind(ctx, frame, op.q, narrow[0]!);
  bind(ctx, frame, op.k, narrow[1]!);
}

/** The model's shared tables, or those that the layer makes; what has a name there lasts until the frame ends. */
function tablesOf(ctx: Context, op: RotaryOp, frame: Frame): Tables {
  const { tape, constants, hiddenDtype, tokens } = ctx;
  const elements = tokens * op.rotaryDim;
  if (!op.tables) {
    const table = constant(constants.rotary!, constants.rotaryElements, op.wide === 'tables' ? F32 : hiddenDtype);
    return { cos: table, sin: table, make: undefined };
  }
  if (op.tables === 'repeated') {
    const cos = constant(tape.alloc(elements, hiddenDtype), elements, hiddenDtype);
    const sin = constant(tape.alloc(elements, hiddenDtype), elements, hiddenDtype);
    bind(ctx, frame, '_cos', cos);
    bind(ctx, frame, '_sin', sin);
    return { cos, sin, make: undefined };
  }
  const gathered = op.tables === 'gathered';
  if (gathered) {
    bind(ctx, frame, '_all_positions', constant(tape.alloc(op.positions! * op.rotaryDim, F32), 1, F32));
    bind(ctx, frame, '_ids', constant(tape.bytes(elements * 8), 1, F32));
  }
  const found = constant(tape.alloc(elements, F32), elements, F32);
  const dtype = gathered ? read(frame, op.k).dtype : F32;
  const sincos = cast(tape, found, dtype);
  bind(ctx, frame, '_sincos', sincos);
  tape.drop(found);
  // repeat_interleave, at every use.
  return { cos: sincos, sin: sincos, make: () => constant(tape.alloc(elements, dtype), elements, dtype) };
}

function turn(ctx: Context, x: Tensor, op: RotaryOp, tables: Tables): Tensor {
  const { tape } = ctx;
  if (ctx.fused.includes('rotary') && op.rotaryDim === op.headDim && !op.pairs && !op.turning)
    return turnInPlace(tape, x);
  if (op.turning === 'complex') return turnComplex(ctx, x);
  if (op.turning) return turnHalves(ctx, x, op.turning);
  if (!op.join) return rotate(ctx, x, op, tables);
  const turned = (x.elements / op.headDim) * op.rotaryDim;
  const major = !liesFlat(op);
  const part = turned === x.elements ? tape.hold(x) : slice(tape, x, turned, major);
  const rest = slice(tape, x, x.elements - turned, major);
  const rotated = rotate(ctx, part, op, tables);
  const out = concatenate(tape, [rotated, rest]);
  tape.drop(rotated);
  tape.drop(part);
  tape.drop(rest);
  return out;
}

const liesFlat = (op: RotaryOp): boolean => op.flat === true || op.tables === 'gathered' || op.tables === 'indexed';

function rotate(ctx: Context, x: Tensor, op: RotaryOp, tables: Tables): Tensor {
  const { tape } = ctx;
  const major = !liesFlat(op);
  const inside = op.wide === 'inside';
  const each = op.wide === 'each';
  const cos = tables.make?.() ?? tables.cos;
  const sin = tables.make?.() ?? tables.sin;
  const plain = inside || each ? cast(tape, x, F32) : tape.hold(x);
  const straight = multiply(tape, plain, cos);
  tape.drop(plain);
  const half = x.elements / 2;
  const whole = each ? cast(tape, x, F32) : tape.hold(x);
  const first = slice(tape, whole, half, major);
  const second = slice(tape, whole, half, major);
  tape.drop(whole);
  const negated = scale(tape, second);
  const joined = concatenate(tape, [negated, first]);
  // Stacked pairs are new in the order of the dimensions.
  if (op.pairs) joined.buffer.headMajor = major;
  tape.drop(negated);
  tape.drop(first);
  tape.drop(second);
  const factor = inside ? cast(tape, joined, F32) : tape.hold(joined);
  tape.drop(joined);
  const across = multiply(tape, factor, sin);
  tape.drop(factor);
  const out = add(tape, straight, across);
  tape.drop(straight);
  tape.drop(across);
  if (tables.make) {
    tape.drop(cos);
    tape.drop(sin);
  }
  return out;
}
