import type { Unread } from '../contract.ts';
import type { FileReference } from '../dialect.ts';
import { type JsonNode, lineAt } from '../json-text.ts';

/** Keys that become settings where they hold a value of their own; `auto` leaves them to the trainer. */
const READ: ReadonlySet<string> = new Set([
  'train_micro_batch_size_per_gpu',
  'gradient_accumulation_steps',
  'gradient_clipping',
  'bf16.enabled',
  'fp16.enabled',
  'optimizer.type',
  'zero_optimization.stage',
  'zero_optimization.offload_optimizer.device',
  'zero_optimization.offload_param.device',
  'zero_optimization.cpu_offload',
  'zero_optimization.cpu_offload_params',
]);

/** Sections and keys that change no byte: schedules, loss scales, what is printed. Source: deepspeed/runtime/config.py. */
const NO_EFFECT =
  /^(?:scheduler|optimizer\.params|fp16|bf16|steps_per_print|wall_clock_breakdown|dump_state|memory_breakdown|prescale_gradients|gradient_predivide_factor|zero_allow_untested_optimizer|tensorboard|wandb|csv_monitor|comet|flops_profiler|checkpoint|aio|comms_logger|elasticity|autotuning|data_efficiency|curriculum_learning|train_steps|communication_data_type|disable_allgather)(?:\.|$)/;
/** Inside `bf16` and `fp16` these two do bear on memory: masters and states in 16 bits. */
const IN_16_BITS = /^(?:bf16|fp16)\.(?:\w*master_weights\w*|\w*optimizer_states)$/;
const ZERO_NO_EFFECT =
  /\.(?:round_robin_gradients|gather_16bit_weights_on_model_save|stage3_gather_\w+|log_trace_cache_warnings|ignore_unused_parameters|legacy_stage1|elastic_checkpoint|load_from_fp32_weights)$/;

/** `auto` is filled in by the trainer, and the global batch follows from what else is said. */
const ELSEWHERE = 'said-elsewhere';

/** Every key of a DeepSpeed config that became no setting, with the reason. */
export function unreadOf(root: JsonNode, { source }: FileReference): readonly Unread[] {
  const entry = (key: string, node: JsonNode, reason: string): Unread => ({
    key,
    origin: { kind: 'file', path: source.path, line: lineAt(source.text, node.start) },
    reason,
  });
  const below = (node: JsonNode, above: string): readonly Unread[] =>
    (node.members ?? []).flatMap(({ key: name, node: inner }): readonly Unread[] => {
      const key = above === '' ? name : `${above}.${name}`;
      if ((inner.members ?? []).length > 0) return below(inner, key);
      const reason = reasonOf(key, inner.value);
      return reason === undefined ? [] : [entry(key, inner, reason)];
    });
  return below(root, '');
}

function reasonOf(key: string, value: JsonNode['value']): string | undefined {
  if (READ.has(key)) return value === 'auto' ? ELSEWHERE : undefined;
  if (key === 'train_batch_size') return ELSEWHERE;
  if (IN_16_BITS.test(key)) return 'not-estimated';
  if (NO_EFFECT.test(key) || (key.startsWith('zero_optimization.') && ZERO_NO_EFFECT.test(key)))
    return 'no-effect-on-memory';
  if (value === 'auto') return ELSEWHERE;
  return /^(?:zero_|activation_checkpointing|compression_training|data_types|torch_autocast|amp|compile|tensor_parallel)/.test(
    key,
  )
    ? 'not-estimated'
    : 'unknown-key';
}
