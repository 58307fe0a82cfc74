import { bytesOf } from '../../core/index.ts';
import { dataParallelSize, type FusedKernel, type Lora, type PlanValues } from '../../spec/index.ts';
import type { CardSpeed } from './card-speed.ts';
import type { LinearWork, Workload } from './workload.ts';

/** Share of the data sheet's FLOP/s that large matrix multiplications reach; of bandwidth, that streaming kernels reach. */
const REACHED = { flops: 0.75, attention: 0.5, memory: 0.85 } as const;
/** From one kernel to the next where the CPU is what holds up (eager PyTorch, Python on a current core), seconds. */
const LAUNCH = 6e-6;
/** PCI Express 4.0 × 16 with pinned memory, and what a host's cores read and write in an optimizer step, bytes/s. */
const HOST = { pcie: 20e9, memory: 40e9 } as const;
/** What kernels that do several operations in one pass leave of the traffic between the products. */
const FUSED = 0.4;
/** Share of the collectives of sharded parameters that computation does not hide. */
const SHOWN = 0.5;
/** Kernels a LoRA layer adds to a pass: two products, scaling, the sum, casts. */
const LORA_KERNELS = 6;

/** Seconds that one pass over the layers keeps the card and the CPU busy. */
interface Pass {
  readonly gpu: number;
  readonly cpu: number;
}

const busiest = ({ gpu, cpu }: Pass): number => Math.max(gpu, cpu);

const adaptedLinears = ({ linears }: Workload, { targetModules }: Lora): readonly LinearWork[] =>
  typeof targetModules === 'string'
    ? linears
    : linears.filter(({ name }) => targetModules.some((target) => name === target || name.endsWith(`.${target}`)));

const adapterWeights = (linears: readonly LinearWork[], { r }: Lora): number =>
  linears.reduce((sum, { inFeatures, outFeatures, count }) => sum + count * r * (inFeatures + outFeatures), 0);

/** What the optimizer reads and writes for one trained weight, bytes: gradient, weight, states there and back. */
function optimizerTraffic(optim: string, master: number): number {
  const states = /8bit/.test(optim) ? 2 : /adafactor|galore|apollo|lomo/.test(optim) ? 1 : /sgd/.test(optim) ? 0 : 8;
  return master + 2 * master + 2 * states;
}

/**
 * Predicted seconds of one optimizer step of one rank. The absolute figure is rough; plans of one run are compared by it. Matrix
 * products take the longer of their arithmetic and the reading of their weights (the roofline of
 * https://doi.org/10.1145/1498765.1498785); what stands between them streams through memory; 4-bit weights are expanded once a
 * pass (bitsandbytes); a pass never ends before the CPU has launched its kernels; host transfers hide behind the computation as
 * far as there is any. Backward passes cost a forward pass for the inputs' gradients and one for those of trained weights.
 */
export function stepSeconds(values: PlanValues, work: Workload, speed: CardSpeed): number {
  const tokens = values.perDeviceTrainBatchSize * values.maxLength;
  const adapted = values.lora && values.method !== 'full' ? adaptedLinears(work, values.lora) : [];
  const trained = values.lora && adapted.length > 0 ? adapterWeights(adapted, values.lora) : work.parameters;
  const full = values.method === 'full';
  const width = values.mixedPrecision === 'no' ? bytesOf(values.dtype) : 2;

  const matmul = (weights: number, read: number): number =>
    Math.max((2 * tokens * weights) / (speed.flops * REACHED.flops), (read * 2) / (speed.memoryBytes * REACHED.memory));
  const stream = (bytes: number): number => bytes / (speed.memoryBytes * REACHED.memory);

  const layers = matmul(work.activeWeights, Math.min(work.layerWeights, work.activeWeights * tokens));
  const head = matmul(work.headWeights, work.headWeights);
  const attention = work.attention.reduce((sum, { width: features, heads, window, count }) => {
    const eager = values.attnImplementation === 'eager';
    const seen = Math.min(values.maxLength, window ?? Number.POSITIVE_INFINITY);
    // A causal kernel leaves out the half that is masked; eager attention computes it, and its scores go through memory.
    const flops = (4 * tokens * features * (eager ? values.maxLength : seen * (window ? 1 : 0.5))) / REACHED.attention;
    const scores = eager ? stream(tokens * values.maxLength * heads * 8 * width) : 0;
    return sum + count * (flops / speed.flops + scores);
  }, 0);
  const fused = (kernel: FusedKernel): boolean => values.fusedKernels?.includes(kernel) === true;
  const dropout = values.lora && values.lora.loraDropout > 0 ? 4 : 0;
  const adapters =
    stream(
      adapted.reduce(
        (sum, { inFeatures, outFeatures, count }) => sum + count * ((4 + dropout) * inFeatures + 6 * outFeatures),
        0,
      ) *
        tokens *
        width,
    ) * (fused('lora') ? FUSED : 1);
  const upcast = values.quantization?.upcastRestToFp32 ? 2 : 1;
  const pointwise = stream(work.pointwiseElements * tokens * width * upcast) * (fused('norm') ? FUSED : 1);
  const expand = values.quantization
    ? stream(work.layerWeights * (values.quantization.bits / 8 + 2 + 2 * Number(values.quantization.bits === 8)))
    : 0;
  const forward: Pass = {
    gpu: layers + attention + adapters + pointwise + expand,
    cpu: LAUNCH * (work.kernels + adapted.reduce((sum, { count }) => sum + count, 0) * LORA_KERNELS),
  };
  const again = values.gradientCheckpointing.enabled ? 1 : 0;
  const backward: Pass = {
    gpu: layers * (full ? 2 : 1) + attention * 2.5 + adapters * 2 + pointwise * 1.5 + expand,
    cpu: forward.cpu * 1.5,
  };
  const compute = busiest(forward) * (1 + again) + busiest(backward) + head * (full ? 3 : 2);

  const { strategy, offload } = values.distributed;
  const ranks = dataParallelSize(values.distributed);
  const others = (ranks - 1) / ranks;
  const shardsParameters = strategy === 'zero3' || strategy.startsWith('fsdp') || strategy === 'hsdp';
  // FSDP reduces gradients with the last micro batch alone, unless told otherwise.
  const reduced = values.syncsEachMicroBatch || strategy === 'zero3' ? 1 : 1 / values.gradientAccumulationSteps;
  const moved = shardsParameters ? (work.parameters * (2 + again) + trained * reduced) * 2 * others : 0;
  const paged = offload.includes('parameters') ? (work.parameters * 2 * (2 + again)) / ranks / HOST.pcie : 0;
  const boundaries = values.gradientCheckpointing.offload
    ? (2 * work.boundaryElements * tokens * width) / HOST.pcie
    : 0;
  const copies = paged + boundaries;
  // Copies hide behind the computation; what does not fit there, and some of what does, shows.
  const hidden = Math.min(copies, 0.7 * compute);
  const micro = compute + copies - 0.95 * hidden + (SHOWN * moved) / speed.linkBytes;

  return values.gradientAccumulationSteps * micro + optimizerSeconds(values, trained, ranks, speed);
}

function optimizerSeconds(values: PlanValues, trained: number, ranks: number, speed: CardSpeed): number {
  const { strategy, offload } = values.distributed;
  const sharded = strategy !== 'none' && strategy !== 'dp' && strategy !== 'ddp';
  const own = sharded ? trained / ranks : trained;
  const master = values.method === 'full' ? bytesOf(values.dtype) : bytesOf(values.lora?.adapterDtype ?? 'fp32');
  const traffic = optimizerTraffic(values.optim, master);
  const reduce = ranks > 1 ? (2 * trained * 2 * ((ranks - 1) / ranks)) / speed.linkBytes : 0;
  if (offload.includes('optimizer')) return own * (traffic / HOST.memory + 4 / HOST.pcie) + reduce * 0.3;
  // Pages of a paged optimizer go to the host and come back where the card is short, which is why it was chosen.
  const pages = /paged/.test(values.optim) ? (own * (/8bit/.test(values.optim) ? 4 : 16)) / HOST.pcie : 0;
  return (own * traffic) / (speed.memoryBytes * REACHED.memory) + pages + reduce * 0.3;
}
