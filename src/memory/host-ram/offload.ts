import { optimizerCost } from '../optimizer-cost.ts';
import { shardedGradientBytes, shardedWeightBytes } from '../sharding.ts';
import { type HostInput, type HostTerms, pinnedSize } from './host-input.ts';

const FP32 = 4;

/**
 * States, weights and activations of one rank that live on the host. DeepSpeed (runtime/zero/stage_1_and_2.py, stage3.py,
 * ops/adam/cpu_adam.py): fp32 weights, fp32 gradients and two fp32 moments, 16 bytes a trained weight, spread over the ranks;
 * weights and gradients lie in one pinned buffer each (assumed: `pin_memory` is on, as in most published configs). FSDP (_flat_param.py, _fsdp_param.py): the fp32 or 16-bit shards and their
 * gradients, pinned each by itself, and the optimizer's states in their dtype. Pinning rounds up to powers of two.
 */
export function offload(input: HostInput): HostTerms {
  // Optimizers that keep states on the host by themselves; paged ones only as far as the device is full, so this is the most.
  const { hostBytes } = input.residents.optimizer;
  const targets = input.values.distributed.offload;
  const engine = input.sharding.engine;
  const optimizer = targets.includes('optimizer');
  const parameters = targets.includes('parameters');
  if (!optimizer && !parameters) return { offloadedStates: hostBytes };
  const terms = engine === 'fsdp' ? fsdp(input) : deepspeed(input, optimizer, parameters);
  const { pinned, states, weights, gradients } = terms;
  return {
    ...(optimizer ? { offloadedStates: states, offloadedGradients: gradients } : { offloadedStates: hostBytes }),
    ...(parameters ? { offloadedParameters: weights } : {}),
    pinnedRounding: pinned,
  };
}

interface Offloaded {
  readonly states: number;
  readonly gradients: number;
  readonly weights: number;
  /** What rounding pinned buffers adds. */
  readonly pinned: number;
}

const rounding = (bytes: number): number => pinnedSize(bytes) - bytes;

function deepspeed(input: HostInput, optimizer: boolean, parameters: boolean): Offloaded {
  const { values, plan, sharding } = input;
  const partition = Math.ceil(plan.trainable * FP32 * sharding.stateShare);
  const weights = shardedWeightBytes(plan, sharding, values.dtype);
  return {
    // DeepSpeed puts its own Adam in the place of whatever is asked for: two fp32 moments beside the weights.
    states: 3 * partition,
    gradients: partition,
    weights,
    pinned: (optimizer ? 2 * rounding(partition) : 0) + (parameters ? tensorRounding(input, 1) : 0),
  };
}

function fsdp(input: HostInput): Offloaded {
  const { values, plan, sharding } = input;
  const cost = optimizerCost(plan, values, sharding.storesFp32);
  const weights = shardedWeightBytes(plan, sharding, values.dtype);
  const gradients = shardedGradientBytes(plan, sharding);
  return {
    states: Math.ceil(cost.statesBytes * sharding.stateShare),
    gradients,
    weights,
    pinned:
      values.distributed.strategy === 'fsdp2' ? tensorRounding(input, 2) : unitRounding(input, weights, gradients),
  };
}

/** ZeRO-3 and FSDP2 pin the shard of every tensor; of FSDP2 the gradients come back into pinned memory as well. */
function tensorRounding({ plan, sharding }: HostInput, copiesOfTrained: 1 | 2): number {
  return plan.groups.reduce((total, { parameter, count }) => {
    const whole = sharding.storesFp32 && parameter.trainable ? parameter.elements * FP32 : parameter.bytes;
    return total + rounding(whole * sharding.weightShare) * count * (parameter.trainable ? copiesOfTrained : 1);
  }, 0);
}

/** FSDP1 pins one flat shard a unit (a layer; the root), and one for its gradients where it is trained. */
function unitRounding({ plan }: HostInput, weights: number, gradients: number): number {
  const whole = Math.max(1, plan.residentBytes);
  const layers = Math.max(...plan.kindBytes, 1);
  const units = [
    plan.rootBytes,
    ...Array.from({ length: Math.round((whole - plan.rootBytes) / layers) }, () => layers),
  ];
  return [weights, gradients].reduce(
    (total, bytes) => total + units.reduce((sum, unit) => sum + rounding((bytes * unit) / whole), 0),
    0,
  );
}

/** Boundary activations of a micro batch, one pinned buffer a layer, bytes of one rank. */
export function offloadedActivations({ values, model }: HostInput): number {
  const { enabled, offload: asked, everyNLayers } = values.gradientCheckpointing;
  const on = asked || (enabled && values.distributed.offload.includes('activations'));
  if (!on) return 0;
  const width = values.dtype === 'fp32' && values.mixedPrecision === 'no' ? 4 : 2;
  const boundary = values.perDeviceTrainBatchSize * model.rowsPerRow * values.maxLength * model.hiddenSize * width;
  return pinnedSize(boundary) * Math.ceil(model.layers / Math.max(1, everyNLayers));
}
