import type { ModelDescription } from '../../model/index.ts';
import type { FusedKernel, GradientCheckpointing } from '../../spec/index.ts';
import type { Phase } from '../estimate.ts';
import type { ParameterPlan } from '../parameters.ts';
import { type AttentionKernel, type Context, endAutocast, type Frame } from '../rules/context.ts';
import { runOps } from '../rules/run-ops.ts';
import { Buffer, type Dtype, F32, Node, owner, roundUp, type Tape, Tensor, widthOf } from '../tape/tape.ts';
import { type LayerSummary, Layers } from './layers.ts';
import { headAndLoss, type LossOptions } from './loss.ts';
import type { Timeline } from './timeline.ts';

const ACTIVATIONS = owner('activations');
const LOGITS = owner('logits');
const TEMPORARY = owner('temporaryBuffers');
const COMMUNICATION = owner('communicationBuffers');

export interface PassInput {
  readonly description: ModelDescription;
  readonly plan: ParameterPlan;
  readonly tape: Tape;
  readonly timeline: Timeline;
  readonly batch: number;
  readonly tokens: number;
  readonly amp: Dtype | undefined;
  readonly attention: AttentionKernel;
  readonly checkpointing: GradientCheckpointing;
  readonly hookedEmbedding: boolean;
  readonly fused: readonly FusedKernel[];
  readonly loss: LossOptions;
  /** Gathered parameters while layers run, bytes. */
  readonly gatheredLayerBytes: number;
  /** Inputs of layers and their gradients last until the backward pass ends; see `holdsInputs` of Sharding. */
  readonly holdsInputs: boolean;
}

/** What the backward pass needs of a forward pass. */
export interface ForwardResult {
  readonly backward: () => void;
}

/** One forward pass, played on the timeline as `phase`; its backward pass can be played once. */
export function forwardPass(input: PassInput, phase: Phase): ForwardResult {
  const { description, plan, tape, timeline, batch, tokens, checkpointing, attention: kernel } = input;

  // Embedding, masks and tables.
  tape.owner = ACTIVATIONS;
  tape.nodes = [];
  tape.begin();
  const base = {
    tape,
    states: plan.states,
    batch,
    tokens,
    amp: input.amp,
    attention: kernel,
    fused: input.fused,
    hookedEmbedding: input.hookedEmbedding,
    castCache: new Map(),
  };
  const frame: Frame = new Map();
  const nothing = { rotary: undefined, rotaryElements: 0, mask: undefined, maskHeads: 1 };
  runOps({ ...base, hiddenDtype: F32, constants: nothing }, description.embedding, frame);
  const hidden = frame.get('hidden_states')!;
  frame.delete('hidden_states');
  // The model's own frame names these until its forward ends.
  const named = [...frame.values()];
  const inputNamed = named.some((tensor) => tensor.buffer === hidden.buffer);
  const embeddingNodes = tape.nodes;
  const { rotaryTables } = description;
  const rotaryElements = rotaryTables ? tokens * rotaryTables.dim : 0;
  const tables = rotaryTables
    ? Array.from({ length: rotaryTables.pairs * 2 }, () => tape.alloc(rotaryElements, hidden.dtype))
    : [];
  const { maskHeads = 1, eagerMaskWidth = widthOf(hidden.dtype) } = description;
  const maskWidth = maskHeads > 1 ? widthOf(hidden.dtype) : kernel === 'eager' ? eagerMaskWidth : 1;
  const masks =
    kernel === 'flash'
      ? []
      : Array.from({ length: description.masks }, () => tape.bytes(batch * maskHeads * tokens * tokens * maskWidth));
  timeline.play(phase, tape.end());
  const ctx: Context = {
    ...base,
    hiddenDtype: hidden.dtype,
    constants: {
      rotary: tables[0],
      rotaryElements,
      mask: kernel === 'eager' || maskHeads > 1 ? masks[0] : undefined,
      maskHeads,
    },
  };

  // Layers. Equal ones in a row are one run; the first stands alone, the model's frame still names its input.
  const layers = new Layers(ctx, description, checkpointing, input.holdsInputs);
  let current = { dtype: hidden.dtype, needsGrad: hidden.node !== null };
  const inputBytes = hidden.buffer.bytes;
  const runs: { readonly summary: LayerSummary; times: number }[] = [];
  for (let index = 0; index < description.layers.length; index += 1) {
    const summary = layers.summary(index, current);
    current = summary.output;
    const last = runs.at(-1);
    if (last && last.summary === summary && index > 1) last.times += 1;
    else runs.push({ summary, times: 1 });
  }
  const inputKept = inputNamed && (runs[0]?.summary.inputFreed ?? false);
  timeline.add(COMMUNICATION, input.gatheredLayerBytes);
  runs.forEach(({ summary, times }, index) => {
    timeline.play(phase, summary.forward, times);
    if (index === 0 && inputKept) timeline.add(ACTIVATIONS, inputBytes);
  });

  timeline.add(COMMUNICATION, -input.gatheredLayerBytes);

  // Last norm, head, loss.
  const keepsMasks = checkpointing.enabled && !tape.noGrad;
  tape.nodes = [];
  tape.owner = ACTIVATIONS;
  tape.begin();
  const elements = batch * tokens * description.hiddenSize;
  const needsGrad = current.needsGrad && !tape.noGrad;
  const last = new Tensor(
    counted(elements, current.dtype, ACTIVATIONS),
    elements,
    current.dtype,
    needsGrad ? new Node(elements, current.dtype, () => {}) : null,
  );
  const finalFrame: Frame = new Map([['hidden_states', last]]);
  runOps(ctx, description.final, finalFrame);
  const states = finalFrame.get('hidden_states')!;
  const finalNodes = tape.nodes;
  tape.nodes = [];
  if (!keepsMasks) for (const mask of masks) tape.release(mask);
  for (const tensor of named) if (tensor.buffer !== hidden.buffer) tape.drop(tensor);
  timeline.play(phase, tape.end());
  if (inputKept) timeline.add(ACTIVATIONS, -inputBytes);
  tape.owner = LOGITS;
  tape.begin();
  const root = headAndLoss(ctx, description, plan, states, input.loss);
  timeline.play(phase, tape.end());
  tape.begin();
  endAutocast(ctx);
  if (tape.noGrad) for (const table of tables) tape.release(table);
  timeline.settle(tape.end());
  for (const { summary, times } of runs) timeline.settle(summary.autocastEnd, times);
  const lossNodes = tape.nodes;

  return {
    backward: () => {
      tape.owner = LOGITS;
      tape.begin();
      if (root) root.grad = tape.bytes(4);
      tape.backward(lossNodes);
      tape.owner = TEMPORARY;
      tape.backward(finalNodes);
      if (last.node?.grad) tape.reown(last.node.grad, TEMPORARY);
      timeline.play('backward', tape.end());
      timeline.add(COMMUNICATION, input.gatheredLayerBytes);
      for (const { summary, times } of runs.toReversed()) timeline.play('backward', summary.backward, times);
      timeline.add(COMMUNICATION, -input.gatheredLayerBytes);
      tape.owner = TEMPORARY;
      tape.begin();
      if (keepsMasks) for (const mask of masks) tape.release(mask);
      for (const table of tables) tape.release(table);
      if (hidden.node) hidden.node.grad = counted(elements, hidden.dtype, TEMPORARY);
      tape.backward(embeddingNodes);
      timeline.play('backward', tape.end());
    },
  };
}

/** A tensor that an earlier segment has already counted. */
const counted = (elements: number, dtype: Dtype, to: number): Buffer =>
  new Buffer(roundUp(elements * widthOf(dtype)), to);
