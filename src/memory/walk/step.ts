import type { ModelDescription } from '../../model/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import type { OptimizerCost } from '../optimizers/optimizer.ts';
import { dtypeCode, type ParameterPlan } from '../parameters.ts';
import { type AttentionKernel, type Context, endAutocast, type Frame } from '../rules/context.ts';
import { runOps } from '../rules/run-ops.ts';
import { Buffer, F32, Node, owner, roundUp, Tape, Tensor, widthOf } from '../tape/tape.ts';
import { type LayerSummary, Layers } from './layers.ts';
import { headAndLoss } from './loss.ts';
import { Timeline } from './timeline.ts';

const WEIGHTS = owner('weights');
const GRADIENTS = owner('gradients');
const STATES = owner('optimizerStates');
const ACTIVATIONS = owner('activations');
const LOGITS = owner('logits');
const TEMPORARY = owner('temporaryBuffers');

export interface StepInput {
  readonly description: ModelDescription;
  readonly values: PlanValues;
  readonly plan: ParameterPlan;
  readonly optimizer: OptimizerCost;
  readonly batch: number;
  readonly tokens: number;
}

export interface StepResult {
  readonly timeline: Timeline;
  /** What the forward pass keeps for the backward pass, loss included, bytes. */
  readonly savedBytes: number;
  /** What stays between steps, bytes. */
  readonly residentBytes: number;
}

/** One optimizer step in its steady state (the second one: optimizer states are there), phase by phase. */
export function walkStep(input: StepInput): StepResult {
  const { description, values, plan, optimizer } = input;
  const timeline = new Timeline();
  const gradientBytes = gradientBytesOf(plan);
  timeline.add(WEIGHTS, plan.residentBytes + roundUp(description.bufferBytes));
  timeline.add(STATES, optimizer.statesBytes);
  const residentBytes = timeline.total();
  // The last micro batch of an accumulated step: the gradients of the earlier ones are there throughout.
  const accumulated = values.gradientAccumulationSteps > 1;
  if (accumulated) timeline.add(GRADIENTS, gradientBytes);

  const tape = new Tape();
  tape.gradientsExist = accumulated;
  const savedBytes = walkForwardAndBackward(input, tape, timeline);

  if (!accumulated) timeline.now[GRADIENTS] = gradientBytes;
  const temporary = new Float64Array(timeline.now.length);
  temporary[TEMPORARY] = optimizer.temporaryBytes;
  timeline.note('optimizer', optimizer.temporaryBytes, temporary);
  return { timeline, savedBytes, residentBytes };
}

export const gradientBytesOf = (plan: ParameterPlan): number =>
  plan.groups.reduce((total, { parameter, count }) => total + (parameter.trainable ? parameter.bytes * count : 0), 0);

function walkForwardAndBackward(input: StepInput, tape: Tape, timeline: Timeline): number {
  const { description, values, plan, batch, tokens } = input;
  const before = timeline.total();
  const { gradientCheckpointing: checkpointing } = values;
  const amp = values.mixedPrecision === 'no' ? undefined : dtypeCode(values.mixedPrecision);
  const kernel: AttentionKernel =
    values.attnImplementation === 'eager' ? 'eager' : values.attnImplementation === 'sdpa' ? 'sdpa' : 'flash';

  // Embedding, masks and tables.
  tape.owner = ACTIVATIONS;
  tape.begin();
  const base: Omit<Context, 'constants' | 'hiddenDtype'> = {
    tape,
    states: plan.states,
    batch,
    tokens,
    amp,
    attention: kernel,
    hookedEmbedding: values.method !== 'full' && checkpointing.enabled,
    castCache: new Map(),
  };
  const frame: Frame = new Map();
  runOps(
    { ...base, hiddenDtype: F32, constants: { rotary: undefined, rotaryElements: 0, mask: undefined } },
    description.embedding,
    frame,
  );
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
  const maskBytes = kernel === 'flash' ? 0 : batch * tokens * tokens * (kernel === 'eager' ? widthOf(hidden.dtype) : 1);
  const masks = maskBytes > 0 ? Array.from({ length: description.masks }, () => tape.bytes(maskBytes)) : [];
  timeline.play('forward', tape.end());
  const ctx: Context = {
    ...base,
    hiddenDtype: hidden.dtype,
    constants: { rotary: tables[0], rotaryElements, mask: kernel === 'eager' ? masks[0] : undefined },
  };

  // Layers, forward. Equal layers in a row are one run.
  const layers = new Layers(ctx, description, checkpointing, true);
  let current = { dtype: hidden.dtype, needsGrad: hidden.node !== null };
  const inputBytes = hidden.buffer.bytes;
  const runs: { readonly summary: LayerSummary; times: number }[] = [];
  for (let index = 0; index < description.layers.length; index += 1) {
    const summary = layers.summary(index, current);
    current = summary.output;
    const last = runs.at(-1);
    // The first layer stands alone: the model's frame still names its input.
    if (last && last.summary === summary && index > 1) last.times += 1;
    else runs.push({ summary, times: 1 });
  }
  const inputKept = inputNamed && (runs[0]?.summary.inputFreed ?? false);
  runs.forEach(({ summary, times }, index) => {
    timeline.play('forward', summary.forward, times);
    if (index === 0 && inputKept) timeline.add(ACTIVATIONS, inputBytes);
  });

  // Final norm, head, loss.
  tape.nodes = [];
  tape.owner = ACTIVATIONS;
  tape.begin();
  const elements = batch * tokens * description.hiddenSize;
  const last = new Tensor(
    counted(elements, current.dtype, ACTIVATIONS),
    elements,
    current.dtype,
    current.needsGrad ? new Node(elements, current.dtype, () => {}) : null,
  );
  const finalFrame: Frame = new Map([['hidden_states', last]]);
  runOps(ctx, description.final, finalFrame);
  const states = finalFrame.get('hidden_states')!;
  if (!checkpointing.enabled) for (const mask of masks) tape.release(mask);
  for (const tensor of named) if (tensor.buffer !== hidden.buffer) tape.drop(tensor);
  timeline.play('forward', tape.end());
  if (inputKept) timeline.add(ACTIVATIONS, -inputBytes);
  tape.owner = LOGITS;
  tape.begin();
  const root = headAndLoss(ctx, description, plan, states, values.lossImpl);
  timeline.play('forward', tape.end());
  tape.begin();
  endAutocast(ctx);
  timeline.settle(tape.end());
  for (const { summary, times } of runs) timeline.settle(summary.autocastEnd, times);
  const savedBytes = timeline.total() - before;

  // Backward.
  tape.owner = LOGITS;
  tape.begin();
  if (root) root.grad = tape.bytes(4);
  tape.backward(tape.nodes);
  timeline.play('backward', tape.end());
  for (const { summary, times } of runs.toReversed()) timeline.play('backward', summary.backward, times);
  tape.owner = TEMPORARY;
  tape.begin();
  if (checkpointing.enabled) for (const mask of masks) tape.release(mask);
  for (const table of tables) tape.release(table);
  if (hidden.node) hidden.node.grad = counted(elements, hidden.dtype, TEMPORARY);
  tape.backward(embeddingNodes);
  timeline.play('backward', tape.end());
  return savedBytes;
}

/** A tensor that an earlier segment has already counted. */
const counted = (elements: number, dtype: Tensor['dtype'], to: number): Buffer =>
  new Buffer(roundUp(elements * widthOf(dtype)), to);
