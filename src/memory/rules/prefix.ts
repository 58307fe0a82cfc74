import type { AttentionOp } from '../../model/index.ts';
import { Parameter } from '../parameters.ts';
import { F32, Node, Tensor } from '../tape/tape.ts';
import { bind, type Context, type Frame, read } from './context.ts';

/**
 * Prefix tuning: keys and values are joined to those of the virtual tokens (transformers' DynamicCache.update). The cache
 * holds them until the forward pass ends; the gradients of the joined ones last until all layers have theirs, because what
 * goes back to the prefix is a view of them.
 */
export function withPrefix(ctx: Context, op: AttentionOp, frame: Frame): void {
  if (ctx.prefixTokens === 0) return;
  for (const name of [op.k, op.v]) bind(ctx, frame, name, joined(ctx, op, read(frame, name)));
}

function joined(ctx: Context, op: AttentionOp, x: Tensor): Tensor {
  const { tape, batch, prefixTokens } = ctx;
  const elements = x.elements + batch * op.kvHeads * op.headDim * prefixTokens;
  const buffer = tape.alloc(elements, x.dtype);
  buffer.headMajor = true;
  const prefix = new Node(0, x.dtype, null);
  const node = tape.node(elements, x.dtype, (grad) => {
    grad.refs += 1;
    prefix.grad = grad;
    if (!x.node) return;
    grad.refs += 1;
    tape.give(x.node, grad);
  });
  const out = new Tensor(buffer, elements, x.dtype, node);
  ctx.castCache.set(new Parameter(1, 1, F32, false), tape.hold(out));
  return out;
}
