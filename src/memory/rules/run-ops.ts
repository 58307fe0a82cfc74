import type { CastOp, LinearOp, Op } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import {
  add,
  cast,
  concatenate,
  copy,
  dropout,
  keepOutput,
  multiply,
  repeat,
  scale,
  slice,
  viewHeads,
} from '../tape/primitives.ts';
import { type Dtype, F32, type Tensor } from '../tape/tape.ts';
import { activate } from './activation.ts';
import { alternating, gaussianTopk } from './alternating.ts';
import { attention } from './attention.ts';
import { chunkScan } from './chunk-scan.ts';
import { bind, type Context, done, type Frame, read } from './context.ts';
import { convolution } from './convolution.ts';
import { copyInto } from './copy-into.ts';
import { deltaRule } from './delta-rule.ts';
import { denseExperts } from './dense-experts.ts';
import { disentangled } from './disentangled.ts';
import { divide } from './divide.ts';
import { embedding } from './embedding.ts';
import { frames } from './frames.ts';
import { gatedProduct, opensGate } from './fused-kernels.ts';
import { gatedNorm } from './gated-norm.ts';
import { joinedProjections, projectionsOf } from './joined-linear.ts';
import { linear } from './linear.ts';
import { loopedExperts } from './looped-experts.ts';
import { moe } from './moe.ts';
import { norm } from './norm.ts';
import { positionBias } from './position-bias.ts';
import { rotary } from './rotary.ts';
import { selectiveScan } from './selective-scan.ts';

/** Runs the ops of one frame in order, each by its rule. */
export function runOps(ctx: Context, ops: readonly Op[], frame: Frame): void {
  if (ctx.ownModules === 'litgpt' || ctx.fused.includes('gate')) runJoined(ctx, ops, frame);
  else for (const op of ops) runOp(ctx, op, frame);
}

/** The same where one kernel stands for several ops. */
function runJoined(ctx: Context, ops: readonly Op[], frame: Frame): void {
  const gates = new Set<string>();
  const fusesGates = ctx.fused.includes('gate');
  const joined = ctx.ownModules === 'litgpt' ? projectionsOf(ops) : undefined;
  let parts: readonly Tensor[] = [];
  ops.forEach((op, index) => {
    const part = joined?.ops.indexOf(op as LinearOp) ?? -1;
    if (joined && part >= 0) {
      const { input, output } = joined.ops[part]!;
      if (part === 0) parts = joinedProjections(ctx, joined, read(frame, input));
      if (part === parts.length - 1) done(ctx, frame, input);
      bind(ctx, frame, output, parts[part]!);
    } else if (fusesGates && op.op === 'activation' && opensGate(op, ops.slice(index + 1))) {
      // Nothing happens yet: the gate's kernel reads what the activation would have read.
      bind(ctx, frame, op.output, ctx.tape.hold(read(frame, op.input)));
      done(ctx, frame, op.input);
      gates.add(op.output);
    } else if (op.op === 'multiply' && (gates.delete(op.a) || gates.delete(op.b))) {
      const out = gatedProduct(ctx.tape, read(frame, op.a), read(frame, op.b));
      done(ctx, frame, op.a);
      done(ctx, frame, op.b);
      bind(ctx, frame, op.output, out);
    } else runOp(ctx, op, frame);
  });
}

const NO_STATE: OpState = {};

function runOp(ctx: Context, op: Op, frame: Frame): void {
  const { tape } = ctx;
  tape.at = op;
  switch (op.op) {
    case 'linear':
      finish(ctx, op, frame, linear(ctx, ctx.states.get(op)!.linear!, read(frame, op.input), op));
      break;
    case 'norm':
      finish(ctx, op, frame, norm(ctx, op, ctx.states.get(op) ?? NO_STATE, read(frame, op.input)));
      break;
    case 'activation':
      finish(ctx, op, frame, activate(ctx, op.fn, read(frame, op.input), ctx.states.get(op)));
      break;
    case 'heads':
      finish(ctx, op, frame, viewHeads(tape, read(frame, op.input)));
      break;
    case 'assign':
      bind(ctx, frame, op.output, tape.hold(read(frame, op.input)));
      break;
    case 'scale':
      finish(ctx, op, frame, scale(tape, read(frame, op.input), op.inPlace));
      break;
    case 'dropout':
      finish(ctx, op, frame, dropout(tape, read(frame, op.input), op.p));
      break;
    case 'softcap':
      finish(ctx, op, frame, softcap(ctx, read(frame, op.input)));
      break;
    case 'clamp': {
      // In place: the unclamped values are kept for the gradient.
      const x = read(frame, op.input);
      bind(ctx, frame, op.input, keepOutput(tape, x));
      break;
    }
    case 'add':
    case 'add_in_place':
    case 'multiply': {
      const [a, b] = [read(frame, op.a), read(frame, op.b)];
      const out = op.op === 'multiply' ? multiply(tape, a, b) : add(tape, a, b, op.op === 'add_in_place');
      done(ctx, frame, op.a);
      done(ctx, frame, op.b);
      bind(ctx, frame, op.output, out);
      break;
    }
    case 'split':
      divide(ctx, op, frame);
      break;
    case 'concatenate': {
      const out = concatenate(
        tape,
        op.inputs.map((name) => read(frame, name)),
      );
      for (const name of op.inputs) done(ctx, frame, name);
      bind(ctx, frame, op.output, out);
      break;
    }
    case 'frames':
      frames(ctx, op, ctx.states.get(op)!, frame);
      break;
    case 'copy':
      finish(ctx, op, frame, copy(tape, read(frame, op.input), op.headMajor ?? false));
      break;
    case 'convolution':
      finish(ctx, op, frame, convolution(ctx, op, ctx.states.get(op)!, read(frame, op.input)));
      break;
    case 'gated_norm':
      finish(ctx, op, frame, gatedNorm(ctx, op, ctx.states.get(op)!, read(frame, op.input), read(frame, op.gate)));
      break;
    case 'delta_rule':
      deltaRule(ctx, op, ctx.states.get(op)!, frame);
      break;
    case 'chunk_scan':
      chunkScan(ctx, op, ctx.states.get(op)!, frame);
      break;
    case 'selective_scan':
      selectiveScan(ctx, op, ctx.states.get(op)!, frame);
      break;
    case 'copy_into':
      copyInto(ctx, op, frame);
      break;
    case 'repeat':
      finish(ctx, op, frame, repeat(tape, read(frame, op.input), op.times));
      break;
    case 'drop':
      for (const name of op.names) {
        tape.drop(read(frame, name));
        frame.delete(name);
      }
      break;
    case 'rotary':
      rotary(ctx, op, frame);
      break;
    case 'attention':
      attention(ctx, op, frame);
      break;
    case 'embedding':
      bind(ctx, frame, op.output, embedding(ctx, op, ctx.states.get(op)!));
      break;
    case 'cast': {
      const x = read(frame, op.input);
      finish(ctx, op, frame, cast(tape, x, dtypeLike(ctx, op.like, frame, x)));
      break;
    }
    case 'first_token':
      finish(ctx, op, frame, slice(tape, read(frame, op.input), ctx.batch * op.size, false));
      break;
    case 'position_bias':
      bind(ctx, frame, op.output, positionBias(ctx, op, read(frame, op.keys)));
      break;
    case 'parameter':
      if (op.output) bind(ctx, frame, op.output, tape.hold(ctx.states.get(op)!.weight!.tensor));
      break;
    case 'disentangled':
      disentangled(ctx, op, frame);
      break;
    case 'alternating':
      alternating(ctx, op, frame);
      break;
    case 'gaussian_topk':
      finish(ctx, op, frame, gaussianTopk(ctx, op, read(frame, op.input)));
      break;
    case 'dense_experts':
      finish(ctx, op, frame, denseExperts(ctx, op, ctx.states.get(op)!, read(frame, op.input), read(frame, op.logits)));
      break;
    case 'moe': {
      const state = ctx.states.get(op)!;
      const x = read(frame, op.input);
      const logits = op.logits === undefined ? undefined : read(frame, op.logits);
      finish(
        ctx,
        op,
        frame,
        state.looped ? loopedExperts(ctx, op, state.looped, x) : moe(ctx, op, state.moe!, x, logits),
      );
      break;
    }
    case 'call': {
      const inner: Frame = new Map();
      for (const outer in op.arguments) inner.set(op.arguments[outer]!, tape.hold(read(frame, outer)));
      runOps(ctx, op.ops, inner);
      for (const name in op.results) {
        const value = inner.get(name);
        if (value) bind(ctx, frame, op.results[name]!, tape.hold(value));
      }
      for (const value of inner.values()) tape.drop(value);
    }
  }
}

function dtypeLike(ctx: Context, like: CastOp['like'], frame: Frame, x: Tensor): Dtype {
  if (like === 'fp32') return F32;
  if ('value' in like) return read(frame, like.value).dtype;
  const state = ctx.states.get(like);
  // A quantised weight has no dtype to follow.
  return state?.linear?.weight?.dtype ?? state?.weight?.dtype ?? x.dtype;
}

/** Ends what an op has read, and binds its result. */
function finish(
  ctx: Context,
  op: { readonly input: string; readonly output: string },
  frame: Frame,
  result: Tensor,
): void {
  done(ctx, frame, op.input);
  bind(ctx, frame, op.output, result);
}

/** `tanh(x / cap) * cap`, each bound to the same name. */
export function softcap(ctx: Context, x: Tensor): Tensor {
  const { tape } = ctx;
  const divided = scale(tape, x);
  const bent = keepOutput(tape, divided);
  tape.drop(divided);
  const out = scale(tape, bent);
  tape.drop(bent);
  return out;
}
