import type { ModelFacts } from '../../model/index.ts';
import type { DeviceFacts } from '../device.ts';
import type { MemoryEstimate, TermName } from '../estimate.ts';
import { findOptimizer } from '../optimizers/index.ts';
import type { PlayedSegment } from '../walk/timeline.ts';
import type { WalkedRun } from '../walk-run.ts';
import type { ExplainedTerm } from './explanation.ts';
import { explainGradients, explainWeights } from './parameters.ts';

export interface TermInput {
  readonly run: WalkedRun;
  readonly facts: ModelFacts;
  readonly device: DeviceFacts;
  readonly estimate: MemoryEstimate;
  readonly bytes: number;
}

export type Explained = Pick<ExplainedTerm, 'formula' | 'inputs' | 'sources'>;

/** What each op keeps is written down there, and each rule names the function that it follows. */
const RULES = 'snug src/memory/rules, src/memory/walk';
const AUTOGRAD = 'https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml';
const ALLOCATOR = 'https://github.com/pytorch/pytorch/blob/v2.13.0/c10/cuda/CUDACachingAllocator.cpp';

/** One function a term. */
export const TERMS: Readonly<Record<TermName, (input: TermInput) => Explained>> = {
  weights: explainWeights,
  gradients: explainGradients,
  optimizerStates,
  activations,
  logits,
  temporaryBuffers,
  communicationBuffers,
  inferenceEngine,
  fragmentation,
  cudaContext,
};

function optimizerStates({ run }: TermInput): Explained {
  const { values, sharding, plan } = run;
  const family = findOptimizer(values.optim)!;
  const spread = sharding.stateShare < 1 ? '; spread over the ranks' : '';
  const masters = sharding.masterWeights ? '; an fp32 copy of the trained weights beside them' : '';
  return {
    formula: `${values.optim}: ${family.formula}${masters}${spread}`,
    inputs: {
      trained_parameters: plan.trainable,
      ...(sharding.stateShare < 1 ? { ranks: Math.round(1 / sharding.stateShare) } : {}),
      ...(values.optimArgs ? { optim_args: values.optimArgs } : {}),
    },
    sources: [family.source],
  };
}

/** Bytes that the layers of one forward pass keep, by stretch. */
const kept = (segments: readonly PlayedSegment[]): Record<string, number> =>
  Object.fromEntries(
    segments
      .filter(({ phase, where, endBytes }) => phase === 'forward' && endBytes > 0 && where !== 'head and loss')
      .map(({ where, endBytes, times }) => [`${keyOf(where)}_${times > 1 ? 'each_' : ''}bytes`, endBytes]),
  );

const keyOf = (where: string): string => where.replaceAll(' ', '_');

function activations({ run, facts }: TermInput): Explained {
  const { values, objective, step } = run;
  const { gradientCheckpointing: checkpointing, attnImplementation } = values;
  const how = checkpointing.enabled
    ? `with checkpointing: the input of every ${checkpointing.everyNLayers === 1 ? '' : `${checkpointing.everyNLayers}th `}layer, and one layer while it is run again`
    : 'everything that each op keeps for its gradient';
  return {
    formula: `what the forward pass keeps for the backward pass and is alive at the peak, ${how}; rows × max_length × hidden_size × layers × what their ops keep`,
    inputs: {
      rows: values.perDeviceTrainBatchSize * objective.rowsPerRow,
      max_length: values.maxLength,
      hidden_size: facts.hiddenSize,
      layers: facts.numHiddenLayers,
      attn_implementation: attnImplementation,
      ...kept(step.timeline.played),
    },
    sources: [AUTOGRAD, RULES],
  };
}

const LOSSES: Readonly<Record<WalkedRun['objective']['loss'], readonly [formula: string, source: string]>> = {
  tokens: [
    'logits of every token: in the compute dtype, an fp32 copy, its log-softmax and their gradients, as many as are alive at the peak',
    'transformers 5.17 loss/loss_utils.py ForCausalLMLoss',
  ],
  smoothed: [
    'logits of every token, their log-softmax, its negative, and the gradients of label smoothing',
    'transformers 5.17 trainer_pt_utils.py LabelSmoother',
  ],
  pairs: [
    'logits of chosen and rejected rows, a log-softmax of every row, the reference model’s logits, and copies for what is logged',
    'trl 1.13 trainer/dpo_trainer.py _compute_loss, trainer/utils.py selective_log_softmax',
  ],
  singles: [
    'logits of every row, a log-softmax of each, the reference model’s logits, and copies for what is logged',
    'trl 1.13 trainer/kto_trainer.py _compute_loss, trainer/utils.py selective_log_softmax',
  ],
  reference: ['logits of the reference model', 'trl 1.13 trainer/dpo_trainer.py _compute_loss'],
  odds: [
    'logits of chosen and rejected rows, a log-softmax of every row, and cross-entropy of the chosen ones',
    'trl 1.13 experimental/orpo/orpo_trainer.py concatenated_forward',
  ],
  completion: [
    'logits of the completion’s tokens, divided by the temperature, and a log-softmax of every row',
    'trl 1.13 trainer/grpo_trainer.py _get_per_token_logps_and_entropies',
  ],
  pooled: ['one score a token and label', 'transformers 5.17 modeling_layers.py GenericForSequenceClassification'],
};

const CHUNKED: readonly [string, string] = [
  'hidden states sorted by validity, and the logits of 256 tokens at a time, made again in the backward pass',
  'trl 1.13 trainer/sft_trainer.py _chunk',
];
const FUSED: readonly [string, string] = [
  'logits of a block at a time; the gradients of hidden states and head, made in the forward pass',
  'https://github.com/linkedin/Liger-Kernel/blob/main/src/liger_kernel/ops/fused_linear_cross_entropy.py',
];

const CHUNKED_LOGITS: readonly [string, string] = [
  'logits of every token, and the log-probabilities of all of them in fp32; fp32 copies of the logits an eighth at a time',
  'torchtune 0.6 torchtune/modules/loss/ce_chunked_output_loss.py',
];

function logits({ run, facts }: TermInput): Explained {
  const { values, objective } = run;
  const plain = objective.loss === 'tokens';
  const [formula, source] =
    plain && values.lossImpl === 'chunked'
      ? CHUNKED
      : plain && values.lossImpl === 'fused'
        ? FUSED
        : plain && values.lossImpl === 'chunked_logits'
          ? CHUNKED_LOGITS
          : LOSSES[objective.loss];
  const rows = values.perDeviceTrainBatchSize * objective.rowsPerRow;
  const tokens = objective.loss === 'completion' ? objective.completionTokens : values.maxLength;
  return {
    formula,
    inputs: {
      rows,
      tokens_a_row: tokens,
      vocab_size: facts.vocabSize,
      loss_impl: values.lossImpl,
      one_fp32_copy_bytes: rows * tokens * facts.vocabSize * 4,
    },
    sources: [source],
  };
}

function temporaryBuffers({ run }: TermInput): Explained {
  const { phase, peak } = run.step.timeline.highest();
  if (phase === 'optimizer') {
    const family = findOptimizer(run.values.optim)!;
    return {
      formula: `what the optimizer step makes at once: ${family.formula}; or the norms of clipping, if those are more`,
      inputs: { optim: run.values.optim, max_grad_norm: run.values.maxGradNorm },
      sources: [family.source],
    };
  }
  return {
    formula:
      'gradients of activations on their way down, dequantised or gathered weights, and what an op needs while it runs',
    inputs: { part: peak.where, ...(peak.at ? { op: peak.at.name || peak.at.op } : {}) },
    sources: [AUTOGRAD, RULES],
  };
}

const ENGINES: Readonly<Record<WalkedRun['sharding']['engine'], readonly [formula: string, source: string]>> = {
  none: ['none', ''],
  ddp: [
    'the gradients once more, in buckets (accelerate leaves gradient_as_bucket_view off)',
    'torch 2.13 nn/parallel/distributed.py; accelerate 1.15 utils/dataclasses.py DistributedDataParallelKwargs',
  ],
  deepspeed: [
    'reduce and all-gather buckets of 5e8 elements, or the trained parameters if fewer; ZeRO-3: up to 1e9 gathered parameters',
    'deepspeed runtime/zero/config.py, stage_1_and_2.py, stage3.py',
  ],
  fsdp: [
    'embedding, last norm and head gathered throughout; the layer in use and the next one while layers run',
    'torch 2.13 distributed/fsdp',
  ],
};

function communicationBuffers({ run }: TermInput): Explained {
  const [formula, source] = ENGINES[run.sharding.engine];
  return {
    formula,
    inputs: {
      strategy: run.values.distributed.strategy,
      ranks: run.sharding.ranks,
      gathered_layer_bytes: run.residents.gathering.layerBytes,
    },
    sources: [source],
  };
}

function inferenceEngine({ run, device }: TermInput): Explained {
  return {
    formula: 'capacity of the card × vllm_gpu_memory_utilization',
    inputs: {
      capacity_bytes: device.capacityBytes ?? 0,
      vllm_gpu_memory_utilization: run.values.generation?.vllmGpuMemoryUtilization ?? 0,
    },
    sources: ['trl 1.13 trainer/grpo_config.py, generation/vllm_generation.py'],
  };
}

function fragmentation({ run, estimate }: TermInput): Explained {
  return {
    formula:
      'reserved − allocated, with every allocation of two steps played on the caching allocator: freed blocks that do not fit, holes between small ones, segments of 2 and 20 MiB, cuBLAS workspaces',
    inputs: {
      allocated_peak_bytes: estimate.vram.allocatedPeakBytes,
      transformers: run.values.versions.transformers,
      ...(run.values.allocatorConf ? { allocator_conf: run.values.allocatorConf } : {}),
    },
    sources: [ALLOCATOR, 'snug src/memory/allocator, and src/memory/reserved.ts for what is fitted to published runs'],
  };
}

function cudaContext({ run, device }: TermInput): Explained {
  const capability = device.computeCapability;
  return {
    formula: 'context and kernels of one process by generation of the card; NCCL with more ranks than one',
    inputs: {
      compute_capability: capability ? `${capability.major}.${capability.minor}` : 'not known',
      ranks: run.sharding.ranks,
    },
    sources: ['snug src/memory/device.ts, from nvidia-smi beside reserved memory'],
  };
}
