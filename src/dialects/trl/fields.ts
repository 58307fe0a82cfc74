import type { Grammar } from '../hf-argparser/grammar.ts';
import type { Fields } from '../hf-trainer/fields.ts';
import { FORMER_FIELDS, mergeFields, TRAINING_ARGUMENTS, TRAINING_ARGUMENTS_NEGATABLE } from '../hf-trainer/fields.ts';

/** The commands of `trl`, each a trainer with a config class of its own. */
export const COMMANDS = ['sft', 'dpo', 'grpo', 'kto', 'reward', 'rloo', 'distillation'] as const;
export type Command = (typeof COMMANDS)[number];

const split = (words: string): readonly string[] => words.trim().split(/\s+/);
const fields = (value: string, bool = '', list = ''): Fields => ({
  value: split(value),
  bool: bool === '' ? [] : split(bool),
  list: list === '' ? [] : split(list),
});

/** ModelConfig, ScriptArguments and DatasetMixtureConfig of TRL 1.13. */
const SHARED = fields(
  `model_name_or_path model_revision dtype attn_implementation lora_r lora_alpha lora_dropout lora_task_type
   bnb_4bit_quant_type bnb_4bit_quant_storage dataset_name dataset_config dataset_train_split dataset_test_split
   test_split_size`,
  'use_peft use_rslora use_dora load_in_8bit load_in_4bit use_bnb_nested_quant dataset_streaming ignore_bias_buffers streaming',
  'lora_target_modules lora_target_parameters lora_modules_to_save datasets',
);

/** bf16 is an Optional[bool] in TRL, which needs a value: a bare `--bf16` ends with status 2. */
const BASE = fields('bf16 model_init_kwargs', 'trust_remote_code');

const GENERATION = fields(
  `router_aux_loss_coef num_generations num_generations_eval max_completion_length pad_to_multiple_of
   generation_batch_size steps_per_generation temperature top_p top_k min_p generation_kwargs chat_template_kwargs
   repetition_penalty cache_implementation vllm_mode vllm_model_impl vllm_structured_outputs_regex vllm_server_base_url
   vllm_server_host vllm_server_port vllm_server_timeout vllm_group_port vllm_gpu_memory_utilization
   vllm_max_model_length vllm_tensor_parallel_size beta num_iterations epsilon epsilon_high ref_model_mixup_alpha
   ref_model_sync_steps num_completions_to_print transformers_continuous_batching_config reward_model_name_or_path`,
  `disable_dropout ds3_gather_for_generation shuffle_dataset use_vllm vllm_enable_sleep_mode mask_truncated_completions
   sync_ref_model log_completions log_multimodal log_unique_prompts use_transformers_continuous_batching
   use_transformers_paged`,
  'reward_weights reward_funcs',
);

/** What each config class adds to TrainingArguments. */
const OWN: Readonly<Record<Command, readonly Fields[]>> = {
  sft: [
    fields(
      `router_aux_loss_coef chat_template_path dataset_text_field dataset_kwargs dataset_num_proc eos_token max_length
       truncation_mode packing_strategy pad_to_multiple_of eval_packing completion_only_loss loss_type pad_token`,
      'shuffle_dataset packing padding_free assistant_only_loss activation_offloading',
    ),
  ],
  dpo: [
    fields(
      `router_aux_loss_coef dataset_num_proc max_length truncation_mode pad_to_multiple_of precompute_ref_batch_size
       ld_alpha f_divergence_type f_alpha_divergence_coef label_smoothing beta discopop_tau ref_model_mixup_alpha
       ref_model_sync_steps pad_token`,
      'disable_dropout padding_free precompute_ref_log_probs use_weighting activation_offloading sync_ref_model',
      'loss_type loss_weights',
    ),
  ],
  kto: [
    fields(
      `router_aux_loss_coef dataset_num_proc max_length pad_to_multiple_of precompute_ref_batch_size loss_type beta
       desirable_weight undesirable_weight ref_model_mixup_alpha ref_model_sync_steps`,
      'disable_dropout precompute_ref_log_probs activation_offloading sync_ref_model',
    ),
  ],
  reward: [
    fields(
      'chat_template_path dataset_num_proc eos_token max_length pad_to_multiple_of center_rewards_coefficient pad_token',
      'disable_dropout activation_offloading',
    ),
  ],
  grpo: [
    GENERATION,
    fields(
      `delta sapo_temperature_neg sapo_temperature_pos vespo_k_pos vespo_lambda_pos vespo_k_neg vespo_lambda_neg
       importance_sampling_level multi_objective_aggregation scale_rewards loss_type top_entropy_quantile entropy_coef
       entropy_coef_min entropy_coef_max entropy_coef_delta entropy_target max_tool_calling_iterations
       vllm_importance_sampling_mode vllm_importance_sampling_clip_max vllm_importance_sampling_clip_min
       off_policy_mask_threshold log_completions_hub_repo vllm_importance_sampling_cap`,
      'cast_lm_head_to_fp32 use_adaptive_entropy vllm_importance_sampling_correction use_bias_correction_kl',
    ),
  ],
  rloo: [GENERATION, fields('reward_clip_range', 'normalize_advantages')],
  distillation: [
    GENERATION,
    fields('teacher_model_name_or_path teacher_model_revision teacher_model_init_kwargs max_tool_calling_iterations'),
  ],
};

const NEGATABLE: Readonly<Record<Command, readonly string[]>> = {
  sft: [],
  dpo: ['disable_dropout'],
  kto: ['disable_dropout'],
  reward: ['disable_dropout'],
  grpo: split(
    'ds3_gather_for_generation shuffle_dataset vllm_importance_sampling_correction use_bias_correction_kl log_multimodal',
  ),
  rloo: split('ds3_gather_for_generation shuffle_dataset log_multimodal'),
  distillation: split('ds3_gather_for_generation shuffle_dataset'),
};

/** Names of older TRL versions: read as what they became, so that a config of that time is understood. */
export const FORMER: Readonly<Record<string, { readonly now: string; readonly since: string }>> = {
  max_seq_length: { now: 'max_length', since: 'TRL 0.20' },
  torch_dtype: { now: 'dtype', since: 'TRL 0.27' },
};

/** Options of one trainer's parser. `open`: a script that may declare more. */
export function trlGrammar(command: Command, open: boolean, declares?: (spelling: string) => boolean): Grammar {
  const former: Fields = fields(`${Object.keys(FORMER).join(' ')} chat_template dataset_mixture use_liger`);
  const known = mergeFields(
    TRAINING_ARGUMENTS,
    SHARED,
    BASE,
    ...OWN[command],
    ...(open ? [FORMER_FIELDS, former] : []),
  );
  const negatable = new Set([...TRAINING_ARGUMENTS_NEGATABLE, 'gradient_checkpointing', ...NEGATABLE[command]]);
  return { fields: known, negatable, open, ...(declares ? { declares } : {}) };
}
