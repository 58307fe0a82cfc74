import type { Op } from '../../model/index.ts';
import type { FusedKernel, OwnModules } from '../../spec/index.ts';
import type { PackagedKernel } from '../packaged-kernels.ts';
import type { OpState, Parameter } from '../parameters.ts';
import { cast } from '../tape/primitives.ts';
import type { Buffer, Dtype, Tape, Tensor } from '../tape/tape.ts';

export type AttentionKernel = 'eager' | 'sdpa' | 'flash';

/** What the rules of one pass share. */
export interface Context {
  readonly tape: Tape;
  readonly states: ReadonlyMap<Op, OpState>;
  readonly batch: number;
  /** Tokens a row. */
  readonly tokens: number;
  /** Autocast dtype; undefined: no autocast. */
  readonly amp: Dtype | undefined;
  readonly attention: AttentionKernel;
  readonly fused: readonly (FusedKernel | PackagedKernel)[];
  /** Whose modules these are; undefined: transformers'. */
  readonly ownModules?: OwnModules | undefined;
  /** A padding mask is passed to the model. */
  readonly padded: boolean;
  /** Compute dtype of the hidden states, for tables and masks. */
  readonly hiddenDtype: Dtype;
  /** PEFT asked the frozen embedding for a gradient (checkpointing). */
  readonly hookedEmbedding: boolean;
  /** Virtual tokens whose keys and values stand before those of every layer. */
  readonly prefixTokens: number;
  /** cos, sin and masks of the whole forward pass. */
  readonly constants: Constants;
  /** The model as it was before training, for comparison: no adapters, no weight that autocast would keep a copy of. */
  readonly frozen: boolean;
  /** Autocast's cache of weight copies, one pass. */
  readonly castCache: Map<Parameter, Tensor>;
}

/** What is the same for every stack of a pass. */
export type PassContext = Omit<Context, 'hiddenDtype' | 'constants' | 'tokens'>;

/** The context of one stack; written out, for a spread costs more than an op. */
export const stackContext = (pass: PassContext, tokens: number, hiddenDtype: Dtype, constants: Constants): Context => ({
  tape: pass.tape,
  states: pass.states,
  batch: pass.batch,
  tokens,
  amp: pass.amp,
  attention: pass.attention,
  fused: pass.fused,
  ownModules: pass.ownModules,
  padded: pass.padded,
  hiddenDtype,
  hookedEmbedding: pass.hookedEmbedding,
  prefixTokens: pass.prefixTokens,
  constants,
  frozen: pass.frozen,
  castCache: pass.castCache,
});

export interface Constants {
  /** cos and sin: features of one table. */
  readonly rotaryElements: number;
  readonly rotary: Buffer | undefined;
  /** Mask that is added to the scores: eager's, or one with a value for every head whatever the kernel. */
  readonly mask: Buffer | undefined;
  /** Elements of the mask for one pair of tokens and row: 1, or the heads. */
  readonly maskHeads: number;
}

/** The names of one Python frame. */
export type Frame = Map<string, Tensor>;

/** Binds a name and lets go of what it held. */
export function bind(ctx: Context, frame: Frame, name: string, value: Tensor): void {
  const old = frame.get(name);
  frame.set(name, value);
  if (old) ctx.tape.drop(old);
}

export function read(frame: Frame, name: string): Tensor {
  const value = frame.get(name);
  if (!value) throw new Error(`no value named ${name} in the description`);
  return value;
}

/** A `$` name ends with the op that read it. */
export function done(ctx: Context, frame: Frame, name: string): void {
  if (name.charCodeAt(0) !== 36) return;
  const value = frame.get(name);
  if (!value) return;
  frame.delete(name);
  ctx.tape.drop(value);
}

/** The weight as an op sees it under autocast: fp32 weights that are trained are cast once a pass, frozen ones at every use. */
export function weightFor(ctx: Context, parameter: Parameter): Tensor {
  const { tape, amp } = ctx;
  if (amp === undefined || parameter.dtype === amp) return tape.hold(parameter.tensor);
  if (!parameter.trainable || ctx.frozen || parameter.dtype !== 0) return cast(tape, parameter.tensor, amp);
  const cached = ctx.castCache.get(parameter);
  if (cached) return tape.hold(cached);
  const copy = cast(tape, parameter.tensor, amp);
  ctx.castCache.set(parameter, copy);
  return tape.hold(copy);
}

/** Leaving autocast empties its cache. */
export function endAutocast(ctx: Context): void {
  for (const copy of ctx.castCache.values()) ctx.tape.drop(copy);
  ctx.castCache.clear();
}
