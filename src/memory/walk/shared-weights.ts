import { type Op, type Stack, visitOps } from '../../model/index.ts';
import type { Parameter } from '../parameters.ts';
import type { Context, PassContext } from '../rules/context.ts';
import { cast } from '../tape/primitives.ts';
import { F32, Node, owner, Tensor } from '../tape/tape.ts';
import { outside } from './layers.ts';

const ACTIVATIONS = owner('activations');
const TEMPORARY = owner('temporaryBuffers');

/**
 * Autocast's copies of weights that every layer has (`sharesWeights`): made once a pass, their gradients are complete with the
 * first layer's. To a layer they are values of another segment.
 */
export class SharedWeights {
  /** As the embedding's segment made them. */
  private readonly copies: ReadonlyMap<Parameter, Tensor>;

  constructor(ctx: PassContext, stack: Stack) {
    const copies = new Map<Parameter, Tensor>();
    if (ctx.amp !== undefined && ctx.amp !== F32 && !ctx.frozen) {
      for (const ops of stack.kinds) {
        for (const parameter of castParameters(ctx, ops))
          copies.set(parameter, cast(ctx.tape, parameter.tensor, ctx.amp));
      }
    }
    this.copies = copies;
  }

  /** Puts the copies where a layer finds them; what it made of them is to be given gradients. */
  lend(ctx: Context): readonly Tensor[] {
    return [...this.copies].map(([parameter, { elements, dtype, node }]) => {
      const lent = new Tensor(
        outside(elements, dtype, ACTIVATIONS),
        elements,
        dtype,
        node && new Node(elements, dtype, null),
      );
      ctx.castCache.set(parameter, lent);
      return lent;
    });
  }

  takeBack(ctx: Context): void {
    for (const parameter of this.copies.keys()) ctx.castCache.delete(parameter);
  }

  /** All layers have run backward. */
  receive(): void {
    for (const { node, elements, dtype } of this.copies.values()) {
      if (node) node.grad = outside(elements, dtype, TEMPORARY);
    }
  }

  drop(ctx: Context): void {
    for (const copy of this.copies.values()) ctx.tape.drop(copy);
  }
}

function castParameters(ctx: PassContext, ops: readonly Op[]): readonly Parameter[] {
  const found: Parameter[] = [];
  visitOps(ops, '', (op) => {
    const state = op.op === 'linear' ? ctx.states.get(op)?.linear : undefined;
    if (!state) return;
    const { weight, bias, adapter } = state;
    const low = adapter && adapter.kind !== 'ia3' ? [adapter.a, adapter.b] : [];
    for (const parameter of [weight, bias, ...low]) {
      if (parameter?.trainable && parameter.dtype === F32) found.push(parameter);
    }
  });
  return found;
}
