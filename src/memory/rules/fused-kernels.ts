import type { NormOp, Op } from '../../model/index.ts';
import type { OpState } from '../parameters.ts';
import { share } from '../tape/gradients.ts';
import { type Buffer, type Node, type Tape, Tensor } from '../tape/tape.ts';
import type { Context } from './context.ts';

/**
 * Kernels that stand in for whole modules: Liger (ops/rms_norm.py, layer_norm.py, rope.py, swiglu.py, geglu.py) and Unsloth's
 * alike. They keep 16-bit inputs, make no fp32 copies, and write gradients over what they get.
 */

/** RMSNorm and LayerNorm: the input and fp32 statistics of each row are kept; the gradient of the input is the output's, overwritten. */
export function fusedNorm(ctx: Context, op: NormOp, state: OpState, x: Tensor): Tensor {
  const { tape } = ctx;
  const rows = x.elements / op.size;
  const statistics = tape.bytes(rows * 4 * (op.form === 'layer' ? 2 : 1));
  const out = tape.allocLike(x.elements, x.dtype, x.buffer);
  const parameters = [state.weight, state.bias].flatMap((parameter) => parameter?.tensor.node ?? []);
  const node =
    x.node || parameters.length > 0
      ? tape.node(x.elements, x.dtype, (grad) => {
          for (const leaf of parameters) tape.give(leaf, tape.alloc(leaf.elements, leaf.dtype));
          if (x.node) tape.give(x.node, share(grad));
        })
      : null;
  if (node) {
    tape.save(node, x.buffer);
    tape.save(node, statistics);
  }
  tape.release(statistics);
  return new Tensor(out, x.elements, x.dtype, node);
}

/** Rotary embedding: q and k are turned where they lie, and so are their gradients. */
export function turnInPlace(tape: Tape, x: Tensor): Tensor {
  const parent = x.node;
  x.buffer.refs += 1;
  const node = parent ? tape.node(x.elements, x.dtype, (grad) => tape.give(parent, share(grad))) : null;
  return new Tensor(x.buffer, x.elements, x.dtype, node);
}

/** `act(gate) * up`: both factors are kept, and hold their own gradients afterwards. */
export function gatedProduct(tape: Tape, gate: Tensor, up: Tensor): Tensor {
  const node = gate.node || up.node ? tape.node(up.elements, up.dtype, gatedBackward, gate, up) : null;
  tape.save(node, gate.buffer);
  tape.save(node, up.buffer);
  return new Tensor(tape.allocLike(up.elements, up.dtype, up.buffer), up.elements, up.dtype, node);
}

/** What was kept is written over: behind a checkpoint that is what was made again, not what the forward pass has let go. */
function gatedBackward(_: Buffer, { a: gate, b: up, saved }: Node, tape: Tape): void {
  const [toGate, toUp] = saved!.map(share);
  for (const [tensor, grad] of [
    [gate!, toGate!],
    [up!, toUp!],
  ] as const) {
    if (tensor.node) tape.give(tensor.node, grad);
    else tape.release(grad);
  }
}

/** Whether `op` is the activation of a gate whose product is the next use of its result. */
export function opensGate(op: Op, rest: readonly Op[]): boolean {
  if (op.op !== 'activation' || !/^(silu|gelu)/.test(op.fn)) return false;
  const next = rest.find(({ op: kind }) => kind !== 'linear');
  return next?.op === 'multiply' && (next.a === op.output || next.b === op.output);
}
