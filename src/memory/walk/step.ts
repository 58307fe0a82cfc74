import type { ModelDescription, Op } from '../../model/index.ts';
import type { FusedKernel, PlanValues } from '../../spec/index.ts';
import { Recorder, type ScriptEntry } from '../allocator/script.ts';
import type { Phase } from '../estimate.ts';
import type { ObjectiveShape } from '../objective.ts';
import { optimizerSettings } from '../optimizer-cost.ts';
import { findOptimizer } from '../optimizers/index.ts';
import type { OptimizerCost } from '../optimizers/optimizer.ts';
import { packagedKernels } from '../packaged-kernels.ts';
import { dtypeCode, type Parameter, type ParameterPlan, renew } from '../parameters.ts';
import type { AttentionKernel } from '../rules/context.ts';
import type { Gathering } from '../sharding.ts';
import { noOwners, owner, roundUp, Tape, widthOf } from '../tape/tape.ts';
import { versionFacts } from '../versions.ts';
import { forwardPass, type PassInput } from './forward.ts';
import { cacheBytes, decodingTransient } from './generation.ts';
import { heldByLastLoss } from './held-loss.ts';
import { Timeline } from './timeline.ts';

const WEIGHTS = owner('weights');
const GRADIENTS = owner('gradients');
const STATES = owner('optimizerStates');
const TEMPORARY = owner('temporaryBuffers');
const COMMUNICATION = owner('communicationBuffers');
const ACTIVATIONS = owner('activations');
const ENGINE = owner('inferenceEngine');

/** What one device holds outside the passes, bytes. */
export interface Residents {
  readonly weightBytes: number;
  readonly gradientBytes: number;
  /** Gradients of earlier micro batches of the same step; 0: there are none. */
  readonly accumulatedBytes: number;
  /** Share of a layer's gradients that stays after its backward pass. */
  readonly gradientShare: number;
  readonly communicationBytes: number;
  /** What streams of an engine keep from the allocator beside what is allocated. */
  readonly awaitedBytes: number;
  /** On top of it, while layers run. */
  readonly gathering: Gathering;
  /** What of it outlives the passes. */
  readonly lastingCommunicationBytes: number;
  readonly optimizer: OptimizerCost;
  /** A frozen copy of the model for the objective. */
  readonly referenceBytes: number;
}

/** How FSDP keeps weights. */
export interface Shards {
  /** Part of each unit that one device holds. */
  readonly share: number;
  /** Trainable ones are stored in fp32 whatever they compute in. */
  readonly storesFp32: boolean;
}

export interface StepInput {
  readonly description: ModelDescription;
  readonly values: PlanValues;
  readonly plan: ParameterPlan;
  readonly residents: Residents;
  readonly objective: ObjectiveShape;
  /** What an inference engine in the same process takes, bytes. */
  readonly engineBytes: number;
  /** Whether allocations are recorded for the allocator. */
  readonly records: boolean;
  /** The card is known to be a CUDA one; else the larger of two ways is assumed. */
  readonly cuda: boolean;
  /** Every stretch of the step is kept for an explanation. */
  readonly explains: boolean;
  /** See `holdsInputs` of Sharding. */
  readonly holdsInputs: boolean;
  /** FSDP's shards; undefined: weights are whole, or another engine's. */
  readonly shards: Shards | undefined;
  /** The head of reward models and classifiers. */
  readonly scoring: readonly Op[] | undefined;
}

export interface StepResult {
  readonly timeline: Timeline;
  /** What the forward pass keeps for the backward pass, loss included, bytes. */
  readonly savedBytes: number;
  /** What stays between steps, bytes. */
  readonly residentBytes: number;
  /** Allocations in order; empty when they were not recorded. */
  readonly script: readonly ScriptEntry[];
}

/** One optimizer step in its steady state (the second one: optimizer states are there), phase by phase. */
export function walkStep(input: StepInput): StepResult {
  const { values, residents, objective, description } = input;
  renew(input.plan);
  const timeline = new Timeline(input.explains);
  timeline.add(WEIGHTS, residents.weightBytes + roundUp(description.bufferBytes) + residents.referenceBytes);
  timeline.add(STATES, residents.optimizer.statesBytes);
  const residentBytes = timeline.total();
  generating(input, timeline);
  timeline.add(COMMUNICATION, residents.communicationBytes);
  loading(input, timeline);

  if (values.eval) {
    const batch = values.perDeviceEvalBatchSize * objective.rowsPerRow;
    const reference = comparison(input, timeline, 'eval', batch);
    forwardPass(passInput(input, timeline, inferenceTape(), batch, reference), 'eval');
  }

  // The last micro batch of an accumulated step: the gradients of the earlier ones are there throughout.
  const accumulated = values.gradientAccumulationSteps > 1;
  timeline.add(GRADIENTS, residents.accumulatedBytes);
  const batch = values.perDeviceTrainBatchSize * objective.rowsPerRow;
  const heldBytes = heldByLastLoss(description, values, input.plan);
  timeline.add(ACTIVATIONS, heldBytes);
  const before = timeline.total();
  const tape = new Tape();
  tape.byteMasks = input.cuda;
  const recorder = input.records ? new Recorder() : undefined;
  if (recorder) tape.log = [];
  // A unit of FSDP joins its gradients before they are added to anything.
  tape.gradientsExist = accumulated && !input.shards;
  tape.update = updateInBackward(input);
  const reference = comparison(input, timeline, 'forward', batch);
  const pass = forwardPass(passInput(input, timeline, tape, batch, reference, recorder), 'forward');
  const savedBytes = timeline.total() - before;
  // Naming the next loss lets go of the last one.
  timeline.add(ACTIVATIONS, -heldBytes);
  // FSDP reduces the head's gradients with those of the embedding, its unit's last.
  const { gradientShare } = residents;
  timeline.keep(
    GRADIENTS,
    accumulated && input.shards ? 0 : gradientShare,
    input.shards && gradientShare > 0 ? 1 : undefined,
  );
  pass.backward();
  if (input.shards && values.method === 'full') {
    // The root unit's gradients, the head's already counted, and the tensor they are joined in.
    const joining = noOwners();
    joining[GRADIENTS] = input.plan.rootBytes - timeline.firstKept;
    joining[COMMUNICATION] = input.plan.rootBytes;
    timeline.note('backward', joining[GRADIENTS] + joining[COMMUNICATION], joining, 'gradients of embedding and head');
  }
  // What outlives its own op ends with the graph: views that gradients of a prefix are, inputs of 8-bit layers.
  if (values.method === 'prefix_tuning' || values.quantization?.quantType === 'int8') {
    for (const owner of [ACTIVATIONS, TEMPORARY]) timeline.now[owner] = 0;
  }

  timeline.now[GRADIENTS] = residents.gradientBytes;
  timeline.now[COMMUNICATION] = residents.lastingCommunicationBytes;
  const clipping = values.maxGradNorm > 0 ? clippingBytes(input.plan) : 0;
  timeline.noteOf('optimizer', Math.max(residents.optimizer.temporaryBytes, clipping), TEMPORARY, 'optimizer step');
  return {
    timeline,
    savedBytes,
    residentBytes,
    script: recorder?.entries ?? [],
  };
}

/** Elements that one block of a foreach kernel takes (ATen/native/cuda/MultiTensorApply.cuh `kChunkSize`). */
const FOREACH_CHUNK = 65_536;

/**
 * Clipping: two small tensors a gradient, and the partial sums of `_foreach_norm`, one fp32 number for each gradient and
 * block of the largest one (ATen/native/cuda/ForeachReduceOp.cu).
 */
const clippingBytes = ({ trained: { tensors, largest } }: ParameterPlan): number =>
  1024 * tensors + roundUp(tensors * Math.ceil(largest / FOREACH_CHUNK) * 4);

/** What an optimizer that runs inside the backward pass makes there for one parameter. */
function updateInBackward({ values, plan }: StepInput): Tape['update'] {
  const family = findOptimizer(values.optim);
  // Any optimizer in a hook of its own: one parameter's share of what its step makes at once.
  const alone = (parameter: Parameter): number =>
    family?.cost([{ parameter, count: 1 }], optimizerSettings(values)).temporaryBytes ?? 0;
  const bytesOf = family?.updateBytes ?? (values.optimizerInBackward ? alone : undefined);
  if (!bytesOf) return undefined;
  const parameters = new Map(plan.groups.map(({ parameter }) => [parameter.tensor.node, parameter]));
  return (node) => {
    const parameter = parameters.get(node);
    return parameter ? bytesOf(parameter) : 0;
  };
}

/** Weights go to the device one by one; a quantised one is there in 16 bit for a moment. */
function loading({ plan, values, residents }: StepInput, timeline: Timeline): void {
  if (!values.quantization) return;
  const before = timeline.now.slice();
  timeline.now.fill(0);
  timeline.add(WEIGHTS, residents.weightBytes);
  timeline.noteOf('load', 2 * plan.largestQuantised, TEMPORARY, 'loading');
  before.forEach((bytes, index) => {
    timeline.now[index] = bytes;
  });
}

/**
 * Completions for all micro batches of a step at once: keys and values of all rows, or an engine of its own, which stays
 * unless it can sleep.
 */
function generating(input: StepInput, timeline: Timeline): void {
  const { values, description, engineBytes } = input;
  const { generation } = values;
  if (!generation || input.objective.loss !== 'completion') return;
  timeline.add(ENGINE, engineBytes);
  if (generation.engine === 'transformers') {
    const rows = values.perDeviceTrainBatchSize * values.gradientAccumulationSteps;
    const width = values.mixedPrecision === 'no' ? widthOf(dtypeCode(values.dtype)) : 2;
    const tokens = generation.maxPromptLength + generation.maxCompletionLength;
    const pass = passInput(input, timeline, inferenceTape(), rows);
    const prompt = cacheBytes(description, rows, generation.maxPromptLength, width);
    const cache = cacheBytes(description, rows, tokens, width);
    timeline.add(ACTIVATIONS, prompt);
    const shape = { batch: rows, tokens: Math.max(1, generation.maxPromptLength) };
    forwardPass({ ...pass, ...shape, loss: { ...pass.loss, completionTokens: 0 } }, 'forward');
    timeline.add(ACTIVATIONS, cache - prompt);
    timeline.noteOf('forward', decodingTransient(description, rows, tokens, width), TEMPORARY, 'generation');
    timeline.add(ACTIVATIONS, -cache);
  } else {
    timeline.noteOf('forward', 0, TEMPORARY, 'generation');
  }
  if (generation.vllmEnableSleepMode) timeline.add(ENGINE, -engineBytes);
}

/** The reference model's pass, without gradients, where the objective has one. */
function comparison(input: StepInput, timeline: Timeline, phase: Phase, batch: number): PassInput['reference'] {
  if (!input.objective.reference) return undefined;
  const pass = passInput(input, timeline, inferenceTape(), batch);
  return () => forwardPass({ ...pass, loss: { ...pass.loss, kind: 'reference' } }, phase);
}

/**
 * A compiled model recomputes chains of pointwise functions in the backward pass (functorch's min-cut partitioner): norms, rotary
 * embeddings and gates keep what kernels written for them keep.
 */
function fusedKernelsOf({ torchCompile, fusedKernels, lossImpl }: PlanValues): readonly FusedKernel[] {
  if (torchCompile) return [...new Set<FusedKernel>([...(fusedKernels ?? []), 'norm', 'rotary', 'gate'])];
  return fusedKernels ?? (lossImpl === 'fused' ? ['norm', 'rotary'] : []);
}

function inferenceTape(): Tape {
  const tape = new Tape();
  tape.noGrad = true;
  return tape;
}

function passInput(
  input: StepInput,
  timeline: Timeline,
  tape: Tape,
  batch: number,
  reference?: PassInput['reference'],
  recorder?: Recorder,
): PassInput {
  const { values, description, plan, objective } = input;
  const kernel: AttentionKernel =
    values.attnImplementation === 'eager' ? 'eager' : values.attnImplementation === 'sdpa' ? 'sdpa' : 'flash';
  const flat = values.paddingFree;
  const { shiftsLogits, rebindsLogits } = versionFacts(values.versions);
  const target = objective.loss === 'pooled' ? values.maxLength : (values.maxTargetLength ?? values.maxLength);
  const virtual = values.promptTuning?.numVirtualTokens ?? 0;
  const rowTokens = values.maxLength + (values.method === 'prompt_tuning' ? virtual : 0);
  const tokens = description.encoder ? target : rowTokens;
  return {
    description,
    plan,
    tape,
    timeline,
    // Without padding the rows of a micro batch are one long row.
    batch: flat ? 1 : batch,
    tokens: flat ? batch * tokens : tokens,
    sourceTokens: flat ? batch * values.maxLength : values.maxLength,
    padded: values.attentionMask,
    amp: values.mixedPrecision === 'no' ? undefined : dtypeCode(values.mixedPrecision),
    attention: kernel,
    gathering: input.residents.gathering,
    recorder,
    reference,
    fused: [...fusedKernelsOf(values), ...packagedKernels(values.versions)],
    ownModules: values.ownModules,
    holdsInputs: input.holdsInputs && !tape.noGrad,
    checkpointing: tape.noGrad ? { ...values.gradientCheckpointing, enabled: false } : values.gradientCheckpointing,
    // Prompt tuning's virtual tokens are trained: what they are joined to needs a gradient too.
    hookedEmbedding:
      values.method === 'prompt_tuning' || (values.method !== 'full' && values.gradientCheckpointing.enabled),
    prefixTokens: values.method === 'prefix_tuning' ? virtual : 0,
    loss: {
      kind: objective.loss,
      // Liger leaves the logits out in training only, unless the trainer asks for it (trl sft_trainer.py `skip_logits`).
      impl: tape.noGrad && values.objective === 'clm' && values.lossImpl === 'fused' ? 'full' : values.lossImpl,
      shiftsLogits,
      rebindsLogits,
      named: values.holdsLastLoss === true && !tape.noGrad,
      compiled: values.torchCompile === true,
      scoring: input.scoring,
      completionTokens: objective.completionTokens,
    },
  };
}
