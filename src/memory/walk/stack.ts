import type { Stack } from '../../model/index.ts';
import { GRADIENT_ID, INPUT_ID } from '../allocator/script.ts';
import type { Phase } from '../estimate.ts';
import { type Constants, type Context, type Frame, type PassContext, stackContext } from '../rules/context.ts';
import { runOps } from '../rules/run-ops.ts';
import { endHere } from '../tape/gradients.ts';
import { type Buffer, F32, Node, owner, Tensor, widthOf } from '../tape/tape.ts';
import type { PassInput } from './forward.ts';
import { type LayerSummary, Layers, outside, type Shared } from './layers.ts';
import { SharedWeights } from './shared-weights.ts';

const ACTIVATIONS = owner('activations');
const TEMPORARY = owner('temporaryBuffers');
const COMMUNICATION = owner('communicationBuffers');

/** Before the embedding has run there are no tables. */
const NOTHING_YET: Constants = { rotary: undefined, rotaryElements: 0, mask: undefined, maskHeads: 1 };

/** A stack after its forward pass: what the last op left, and how to go back. */
export interface StackResult {
  readonly ctx: Context;
  /** What follows reads this; it is its to let go. */
  readonly states: Tensor;
  /** After the loss: what leaving autocast frees of the layers. */
  readonly leaveAutocast: () => void;
  /** From the gradient of `states` to the embedding; `before` is what comes right before it. */
  readonly backward: (before: () => void) => void;
}

/** Plays one stack's forward pass on the timeline as `phase`: embedding and masks, layers, last ops. */
export function stackPass(
  input: PassInput,
  base: PassContext,
  stack: Stack,
  tokens: number,
  phase: Phase,
  shared: ReadonlyMap<string, Shared>,
): StackResult {
  const { tape, timeline, batch, checkpointing, attention: kernel } = input;
  tape.owner = ACTIVATIONS;
  tape.nodes = [];
  tape.begin();
  const frame: Frame = new Map();
  runOps(stackContext(base, tokens, F32, NOTHING_YET), stack.embedding, frame);
  const hidden = frame.get('hidden_states')!;
  frame.delete('hidden_states');
  const held = new Map((stack.shares ?? []).map((name) => [name, frame.get(name)!]));
  for (const name of held.keys()) frame.delete(name);
  // The model's own frame names these until its forward ends.
  const named = [...frame.values()];
  const inputNamed = named.some((tensor) => tensor.buffer === hidden.buffer);
  const embeddingNodes = tape.nodes;
  const { rotaryTables, maskHeads = 1 } = stack;
  const rotaryElements = rotaryTables ? (rotaryTables.perRow ? batch : 1) * tokens * rotaryTables.dim : 0;
  const tables: Buffer[] = [];
  const count = rotaryTables ? rotaryTables.pairs * 2 : 0;
  for (let i = 0; i < count; i += 1) tables.push(tape.alloc(rotaryElements, hidden.dtype));
  const masks = makeMasks(input, stack, tokens, widthOf(hidden.dtype));
  const weights = stack.sharesWeights ? new SharedWeights(base, stack) : undefined;
  const { recorder } = input;
  const opening = tape.end();
  timeline.play(phase, opening, 'embedding');
  recorder?.add(opening, 'forward', 0, hidden.buffer.id);
  const ctx = stackContext(base, tokens, hidden.dtype, {
    rotary: tables[0],
    rotaryElements,
    mask: kernel === 'eager' || maskHeads > 1 ? masks[0] : undefined,
    maskHeads,
  });

  // Equal layers in a row are one run; the first stands alone, the model's frame still names its input.
  const layers = new Layers(ctx, stack, checkpointing, input.holdsInputs, withHeld(shared, held), weights);
  let current = { dtype: hidden.dtype, needsGrad: hidden.node !== null };
  const inputBytes = hidden.buffer.bytes;
  const runs: { readonly summary: LayerSummary; readonly first: number; times: number }[] = [];
  const instances: number[] = [];
  for (let index = 0; index < stack.layers.length; index += 1) {
    const summary = layers.summary(index, current);
    current = summary.output;
    const last = runs.at(-1);
    if (last && last.summary === summary && index > 1) last.times += 1;
    else runs.push({ summary, first: index, times: 1 });
  }
  const inputKept = inputNamed && (runs[0]?.summary.inputFreed ?? false);
  const { layerBytes, forwardLayers } = input.gathering;
  timeline.add(COMMUNICATION, layerBytes * forwardLayers);
  let keptBytes = 0;
  runs.forEach(({ summary, first, times }, index) => {
    timeline.play(phase, summary.forward, { first, times }, times);
    if (recorder) {
      const instance = recorder.newInstances(times);
      instances.push(instance);
      recorder.add(summary.forward, 'forward', instance, summary.outputId, times);
    }
    if (index === 0 && inputKept) timeline.add(ACTIVATIONS, inputBytes);
    if (index === 0 && stack.namesWeights) timeline.add(ACTIVATIONS, summary.weightsBytes);
    if (index > 0 && stack.keepsResults && summary.inputFreed) {
      keptBytes += times * inputBytes;
      timeline.add(ACTIVATIONS, times * inputBytes);
    }
  });
  timeline.add(COMMUNICATION, -layerBytes * forwardLayers);

  // Checkpoints keep the layers' arguments; a mask that the kernel takes as it is is kept by every layer itself.
  const maskSaved = maskHeads > 1 && kernel === 'sdpa' && (input.amp ?? hidden.dtype) === hidden.dtype;
  const keepsMasks = (checkpointing.enabled || maskSaved) && !tape.noGrad;
  tape.nodes = [];
  tape.owner = ACTIVATIONS;
  tape.begin();
  const elements = batch * tokens * stack.hiddenSize * (stack.streams ?? 1);
  const needsGrad = current.needsGrad && !tape.noGrad;
  const last = new Tensor(
    outside(elements, current.dtype, ACTIVATIONS),
    elements,
    current.dtype,
    needsGrad ? new Node(elements, current.dtype, endHere) : null,
  );
  last.buffer.id = INPUT_ID;
  const finalFrame: Frame = new Map([['hidden_states', last]]);
  runOps(ctx, stack.final, finalFrame);
  const states = finalFrame.get('hidden_states')!;
  const finalNodes = tape.nodes;
  tape.nodes = [];
  if (!keepsMasks) for (const mask of masks) tape.release(mask);
  if (stack.sharesEnd) for (const tensor of held.values()) tape.drop(tensor);
  for (const tensor of named) if (tensor.buffer !== hidden.buffer) tape.drop(tensor);
  const closing = tape.end();
  timeline.play(phase, closing, 'last norm');
  recorder?.add(closing, 'forward');
  if (inputKept) timeline.add(ACTIVATIONS, -inputBytes);
  if (stack.namesWeights) timeline.add(ACTIVATIONS, -(runs[0]?.summary.weightsBytes ?? 0));

  return {
    ctx,
    states,
    leaveAutocast: () => {
      tape.begin();
      if (tape.noGrad) {
        for (const table of tables) tape.release(table);
        weights?.drop(ctx);
      }
      const leaving = tape.end();
      timeline.settle(leaving);
      timeline.add(ACTIVATIONS, -keptBytes);
      recorder?.add(leaving, 'forward');
      runs.forEach(({ summary, times }, index) => {
        timeline.settle(summary.autocastEnd, times);
        recorder?.add(summary.autocastEnd, 'forward', instances[index], 0, times);
      });
    },
    backward: (before) => {
      tape.begin();
      before();
      tape.owner = TEMPORARY;
      tape.backward(finalNodes);
      if (last.node?.grad) tape.reown(last.node.grad, TEMPORARY);
      const start = tape.end();
      timeline.play('backward', start, 'head and loss');
      recorder?.add(start, 'backward', 0, last.node?.grad?.id ?? 0);
      timeline.add(COMMUNICATION, 2 * layerBytes);
      runs.toReversed().forEach(({ summary, first, times }, index) => {
        const ends = index === runs.length - 1;
        if (ends && times > 1) {
          timeline.play('backward', summary.backward, { first: first + 1, times: times - 1 }, times - 1);
        }
        // Nothing is fetched ahead of the first layer.
        if (ends) timeline.add(COMMUNICATION, -layerBytes);
        const last = ends ? 1 : times;
        timeline.play('backward', summary.backward, { first, times: last }, last);
        recorder?.add(summary.backward, 'backward', instances.pop(), summary.gradientId, times);
      });
      timeline.add(COMMUNICATION, -layerBytes);
      for (const { summary, times } of runs) timeline.add(ACTIVATIONS, -summary.lingeringBytes * times);
      tape.owner = TEMPORARY;
      tape.begin();
      if (keepsMasks) for (const mask of masks) tape.release(mask);
      for (const table of tables) tape.release(table);
      weights?.receive();
      weights?.drop(ctx);
      if (hidden.node) {
        hidden.node.grad = outside(elements, hidden.dtype, TEMPORARY);
        hidden.node.grad.id = GRADIENT_ID;
      }
      for (const { node, elements: size, dtype } of held.values()) {
        if (node) node.grad = outside(size, dtype, TEMPORARY);
      }
      tape.backward(embeddingNodes);
      const end = tape.end();
      timeline.play('backward', end, 'embedding');
      recorder?.add(end, 'backward');
    },
  };
}

/** What the embedding has made for every layer, beside what came from another stack. */
function withHeld(shared: ReadonlyMap<string, Shared>, held: ReadonlyMap<string, Tensor>): ReadonlyMap<string, Shared> {
  if (held.size === 0) return shared;
  const all = new Map(shared);
  for (const [name, { elements, dtype, node }] of held) all.set(name, { elements, dtype, needsGrad: node !== null });
  return all;
}

/** Boolean masks, additive ones in the states' dtype for eager attention, none for flash attention. */
function makeMasks(
  { tape, batch, attention, padded }: PassInput,
  stack: Stack,
  tokens: number,
  width: number,
): Buffer[] {
  if (attention === 'flash' || (stack.paddingMasks && !padded)) return [];
  const { maskHeads = 1, eagerMaskWidth = width } = stack;
  const each = maskHeads > 1 ? width : attention === 'eager' ? eagerMaskWidth : 1;
  const bytes = batch * maskHeads * tokens * tokens * each;
  return Array.from({ length: stack.masks }, () => tape.bytes(bytes));
}
