import type { ModelDescription } from '../../model/index.ts';
import type { FusedKernel, GradientCheckpointing, OwnModules } from '../../spec/index.ts';
import type { Recorder } from '../allocator/script.ts';
import type { Phase } from '../estimate.ts';
import type { PackagedKernel } from '../packaged-kernels.ts';
import type { ParameterPlan } from '../parameters.ts';
import { type AttentionKernel, endAutocast, type PassContext } from '../rules/context.ts';
import type { Gathering } from '../sharding.ts';
import { type Dtype, owner, type Tape } from '../tape/tape.ts';
import { outside, type Shared } from './layers.ts';
import { headAndLoss, type LossOptions } from './loss.ts';
import { type StackResult, stackPass } from './stack.ts';
import type { Timeline } from './timeline.ts';

const LOGITS = owner('logits');
const TEMPORARY = owner('temporaryBuffers');

export interface PassInput {
  readonly description: ModelDescription;
  readonly plan: ParameterPlan;
  readonly tape: Tape;
  readonly timeline: Timeline;
  readonly batch: number;
  readonly tokens: number;
  /** Tokens a row of the encoder. */
  readonly sourceTokens: number;
  /** A padding mask is passed to the model. */
  readonly padded: boolean;
  readonly amp: Dtype | undefined;
  readonly attention: AttentionKernel;
  readonly checkpointing: GradientCheckpointing;
  readonly hookedEmbedding: boolean;
  readonly prefixTokens: number;
  readonly fused: readonly (FusedKernel | PackagedKernel)[];
  readonly ownModules: OwnModules | undefined;
  readonly loss: LossOptions;
  /** Runs the model that the loss compares with, while everything of this pass is there. */
  readonly reference: (() => ForwardResult) | undefined;
  readonly gathering: Gathering;
  readonly recorder: Recorder | undefined;
  /** Inputs of layers and their gradients last until the backward pass ends; see `holdsInputs` of Sharding. */
  readonly holdsInputs: boolean;
}

/** What the backward pass needs of a forward pass. */
export interface ForwardResult {
  /** Lets go of a reference model's logits, which stay named until the loss is done. */
  readonly end: () => void;
  readonly backward: () => void;
}

/** One forward pass, played on the timeline as `phase`; its backward pass can be played once. */
export function forwardPass(input: PassInput, phase: Phase): ForwardResult {
  const { description, plan, tape, timeline } = input;
  const base: PassContext = {
    tape,
    states: plan.states,
    batch: input.batch,
    amp: input.amp,
    attention: input.attention,
    fused: input.fused,
    ownModules: input.ownModules,
    padded: input.padded,
    hookedEmbedding: input.hookedEmbedding,
    prefixTokens: input.loss.kind === 'reference' ? 0 : input.prefixTokens,
    frozen: input.loss.kind === 'reference',
    castCache: new Map(),
  };
  const shared = new Map<string, Shared>();
  let encoder: StackResult | undefined;
  if (description.encoder) {
    encoder = stackPass(
      input,
      base,
      description.encoder,
      description.encoder.tokens ?? input.sourceTokens,
      phase,
      shared,
    );
    const { elements, dtype, node } = encoder.states;
    shared.set(description.encoder.output, { elements, dtype, needsGrad: node !== null });
  }
  const main = stackPass(input, base, description, input.tokens, phase, shared);

  tape.owner = LOGITS;
  tape.begin();
  const { root, finish } = headAndLoss(main.ctx, description, plan, main.states, input.loss);
  const loss = tape.end();
  timeline.play(phase, loss, 'head and loss');
  input.recorder?.add(loss, 'forward');
  const end = (): void => {
    if (!finish) return;
    tape.owner = LOGITS;
    tape.begin();
    finish();
    const finished = tape.end();
    timeline.play(phase, finished, 'head and loss');
    input.recorder?.add(finished, 'forward');
  };
  if (input.loss.kind !== 'reference') {
    const reference = input.reference?.();
    end();
    reference?.end();
  }
  const lossNodes = tape.nodes;
  tape.begin();
  endAutocast(main.ctx);
  if (tape.noGrad && encoder) tape.drop(encoder.states);
  const leaving = tape.end();
  timeline.settle(leaving);
  input.recorder?.add(leaving, 'forward');
  main.leaveAutocast();
  encoder?.leaveAutocast();

  return {
    end,
    backward: () => {
      main.backward(() => {
        tape.owner = LOGITS;
        if (root) root.grad = tape.bytes(4);
        tape.backward(lossNodes);
      });
      encoder?.backward(() => {
        const { node, elements, dtype } = encoder.states;
        tape.drop(encoder.states);
        if (node) node.grad = outside(elements, dtype, TEMPORARY);
      });
    },
  };
}
