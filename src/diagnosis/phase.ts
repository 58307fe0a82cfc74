import type { EvidenceLine, FailurePhase } from './failure.ts';

/** One level of a Python traceback. */
export interface Frame {
  readonly file: string;
  readonly func: string;
  readonly code: string;
}

/** Where in a run a traceback points to, outermost frame first. */
export interface Place {
  readonly phase: FailurePhase;
  readonly traits: NonNullable<EvidenceLine['traits']>;
}

interface Clue {
  readonly phase: FailurePhase;
  readonly func?: RegExp;
  readonly code?: RegExp;
  readonly file?: RegExp;
}

/**
 * Work that stands around training: whichever of its frames is innermost names the phase, though `forward` or `to` come further in.
 * Names are those of transformers, accelerate, peft, torch FSDP/DCP, DeepSpeed, Lightning and the common script habits.
 */
const AROUND: readonly Clue[] = [
  {
    // An inference engine that measures itself before it starts runs a forward pass to do so.
    phase: 'load',
    func: /^(?:determine_num_available_blocks|determine_available_memory|profile_run|_dummy_run|capture_model|_?initialize_kv_caches?\w*|init_device)$/,
  },
  {
    phase: 'save',
    func: /^_?(?:async_)?save(?:_(?:model|checkpoint|pretrained|state|state_dict|optimizer|ckpt|adapter|lora|weights|sharded|full|fsdp|zero|to)\w*)?$|save\w*(?:ckpt|checkpoint)|_save_(?:model|merged|pretrained)\w*|(?:ckpt|checkpoint)\w*_save|^(?:get_)?(?:model_|full_|_full_)?state_dict$|pre_state_dict_hook|^merge_and_unload$|consolidate\w*state|gather_16bit/,
    code: /\bmerge_and_unload\(|\.save_pretrained\w*\(|\.push_to_hub_merged\(|\.save_model\(|\.save_checkpoint\(|\btorch\.save\(/,
  },
  {
    phase: 'eval',
    func: /^_?(?:evaluate|evaluation_loop|evaluation_step|prediction_loop|prediction_step|eval|eval_loop|eval_step|eval_epoch|eval_model|run_eval\w*|validate|validation_step|validation_epoch|run_validation|val_step|val_loop|predict|test_step|_run_sanity_check|nested_concat|nested_gather|pad_across_processes|compute_metrics|gather_for_metrics|preprocess_logits_for_metrics)$/,
    code: /\.evaluate\(|\bevaluate\(|\bnested_concat\(/,
  },
  {
    phase: 'resume',
    func: /^_?(?:load_from_checkpoint|load_optimizer\w*|load_accelerator_state|load_checkpoint|load_fsdp_optimizer|load_rng_state|load_sharded_optimizer\w*|resume\w*|restore\w*|load_state|load_zero_checkpoint|load_optim\w*)$/,
    code: /\boptim\w*\.load_state_dict\(|torch\.load\([^)]*(?:optim|ckpt|checkpoint|resume|last)|\.load_checkpoint\(|\bresume_from\w*\(/,
  },
];

/** The step itself: the innermost frame that says something decides. */
const INSIDE: readonly Clue[] = [
  {
    phase: 'optimizer',
    func: /^(?:_init_group|_?init_state|_?init_group|optimizer_step|_optimizer_step|_?multi_tensor_\w+|_single_tensor_\w+|_take_model_step|_foreach_\w+|initialize_optimizer_states|clip_grad_norm_?\w*|_clip_grad\w*|_prepare_fp32_grad_for_sub_group|_prepare_sub_group|unscale_and_clip_grads|unscale_\w*|init_optimizer\w*)$/,
    code: /\boptim\w*\.step\(|_prepare_fp32_grad_for_sub_group\(|\bexp_avg\w*\b|clip_grad_norm_\(|\bstate\[.*\] = torch\.(?:zeros|empty)_like/,
    file: /[/\\]optim(?:izers?)?[/\\]\w+\.py$|[/\\]optimizer\w*\.py$/,
  },
  {
    phase: 'backward',
    func: /(?<!for_)backward/,
    code: /\.backward\(|\bbackward\(|torch\.autograd\.grad\(/,
  },
  {
    phase: 'forward',
    func: /^(?:forward|_?convert_to_fp32|cross_entropy|log_softmax|compute_loss|training_step|train_step|_get_per_token_logps\w*|get_batch_logps|concatenated_forward|generate|_sample|_generate\w*|_call_impl|scaled_dot_product_attention|nll_loss|logsumexp|_forward_\w+|sdpa_attention_forward)$/,
    code: /\bmodel\(\s*\*{0,2}\w|\boutputs? ?= ?(?:self\.)?\w*model\(|\.logits\b|\bF\.(?:linear|cross_entropy|log_softmax|softmax)\(|\blogits\b.*\.float\(\)|\bcriterion\(|\bloss_fn\(/,
  },
];

const LOAD: Clue = {
  phase: 'load',
  func: /^(?:from_pretrained|from_config|_?load_pretrained_model\w*|_?load_state_dict\w*|load_state_dict_into\w*|_?load_model\w*|_?load_\w*_into_model|load_base_model|build_model|setup_model|create_model|prepare|prepare_model|_prepare_\w+|get_peft_model|dispatch_model|load_adapter|set_module_tensor_to_device|_materialize_copy|create_quantized_param|initialize|to_empty|cuda|load_weights|load_checkpoint_in_model|_move_model_to_device|_init_\w*model\w*)$/,
  code: /\bfrom_pretrained\(|\w*model\w*\.load_state_dict\(|\b\w*model\w*\.(?:to|cuda)\(|\bget_peft_model\(|\bdeepspeed\.initialize\(|accelerator\.prepare\(|\b(?:DDP|DistributedDataParallel|FSDP|FullyShardedDataParallel)\(|\bLLM\(/,
};

/** Python keeps semaphores and segments in /dev/shm; a full one is reported as a full disk. */
const SHARED_MEMORY = /multiprocess(?:ing)?[/\\](?:synchronize|shared_memory|heap)\.py$/;
const VLLM = /[/\\]vllm[/\\]|\bvllm\b|\bLLM\(|\bAsyncLLMEngine\b/;
/** Preference and RL trainers: logits of every position of a completion, over the whole vocabulary. */
const SEQUENCE_LOGITS =
  /per_token_log_?p(?:s|robs)?|batch_log_?p(?:s|robs)|selective_log_softmax|concatenated_forward|compute_(?:ref_)?log_?probs?/;
/** Attention over rows packed end to end: such a row is always full, whatever the samples' own lengths. */
const PACKED_ROWS = /varlen_(?:fwd|bwd|forward|backward)|varlen_func/;
const PINNED = /pin_memory|cudaHostAlloc|cpu_adam|swap_tensor/;

const says = (clue: Clue, frame: Frame): boolean =>
  clue.func?.test(frame.func) === true ||
  clue.code?.test(frame.code) === true ||
  (clue.file?.test(frame.file) === true && frame.func !== '__init__');

/** Whether a frame belongs to a training loop's own step, so that a `.to(` further in is not loading. */
const IN_STEP =
  /^(?:training_step|train_step|_inner_training_loop|compute_loss|training_epoch|train_epoch|fit_loop|forward)$/;

/**
 * Reads the phase off a traceback. Saving, evaluating and resuming win over what runs inside them; a `backward` above a `forward`
 * means recomputation under gradient checkpointing, which is backward; of the rest the innermost frame decides.
 */
export function placeOf(frames: readonly Frame[]): Place {
  const runsThrough = (pattern: RegExp): boolean =>
    frames.some((frame) => pattern.test(frame.file) || pattern.test(frame.func) || pattern.test(frame.code));
  const traits: Place['traits'] = [
    ...(frames.some((frame) => SEQUENCE_LOGITS.test(frame.func)) ? (['sequence-logits'] as const) : []),
    ...(frames.some((frame) => PACKED_ROWS.test(frame.func)) ? (['packed-rows'] as const) : []),
    ...(frames.some((frame) => SHARED_MEMORY.test(frame.file)) ? (['shared-memory'] as const) : []),
    ...(runsThrough(VLLM) ? (['vllm'] as const) : []),
    ...(runsThrough(PINNED) ? (['pinned-memory'] as const) : []),
  ];
  const inward = [...frames].reverse();
  for (const frame of inward) {
    const around = AROUND.find((clue) => says(clue, frame));
    if (around) return { phase: around.phase, traits };
  }
  for (const frame of inward) {
    const inside = INSIDE.find((clue) => says(clue, frame));
    if (!inside) continue;
    if (inside.phase !== 'forward') return { phase: inside.phase, traits };
    const recomputing = frames.some((outer) => says(INSIDE[1]!, outer));
    const loading = !frames.some((outer) => IN_STEP.test(outer.func)) && frames.some((outer) => says(LOAD, outer));
    return { phase: recomputing ? 'backward' : loading ? 'load' : 'forward', traits };
  }
  return { phase: frames.some((frame) => says(LOAD, frame)) ? 'load' : 'unknown', traits };
}
