import { z } from 'zod';
import { type FloatDType, parseFloatDType } from '../../core/index.ts';
import { OPTIMIZERS } from '../hf-trainer/fields.ts';

/** PyYAML-like readers turn `no` into false before anyone can ask. */
const wordNo = (value: unknown): unknown => (value === false ? 'no' : value);
const wordNone = (value: unknown): unknown => (value === null ? 'none' : value);
const asList = (value: unknown): unknown => (typeof value === 'string' ? (value === 'none' ? [] : [value]) : value);

function buildSchema() {
  const whole = (least: number) => {
    const error = `expected a whole number from ${least}`;
    return z.int({ error }).min(least, { error });
  };
  const count = whole(1);
  const text = z.string().min(1);
  const words = z.array(text);

  /** `bf16`, and the long names that PyTorch and configs use. */
  const dtype = z.preprocess(
    (value) => (typeof value === 'string' ? (parseFloatDType(value) ?? value) : value),
    z.enum(['fp32', 'bf16', 'fp16'] satisfies FloatDType[]),
  );

  const adapterTargets = z.union([text, words], { error: 'expected all-linear or a list of module names' });

  const checkpointing = z.preprocess(
    (value) => (typeof value === 'boolean' ? { enabled: value } : value),
    z.strictObject({
      enabled: z.boolean().default(true),
      use_reentrant: z.boolean().default(false),
      every_n_layers: count.default(1),
      offload: z.boolean().default(false),
    }),
  );

  const quantization = z
    .strictObject({
      bits: z.union([z.literal(4), z.literal(8)], { error: 'expected 4 or 8' }).default(4),
      quant_type: z.enum(['nf4', 'fp4', 'int8']).optional(),
      double_quant: z.boolean().default(true),
      compute_dtype: dtype.default('bf16'),
      upcast_rest_to_fp32: z.boolean().default(true),
    })
    .nullable();

  const lora = z.strictObject({
    r: count.default(16),
    lora_alpha: z.number().min(0).default(32),
    lora_dropout: z.number().min(0).max(1).default(0),
    target_modules: adapterTargets.default('all-linear'),
    adapter_dtype: dtype.default('fp32'),
    modules_to_save: words.default([]),
  });

  const ia3 = z.strictObject({
    target_modules: words.default(['k_proj', 'v_proj', 'down_proj']),
    feedforward_modules: words.default(['down_proj']),
    adapter_dtype: dtype.default('fp32'),
  });

  const promptTuning = z.strictObject({
    num_virtual_tokens: count.default(20),
    projection_hidden_size: count.optional(),
  });

  const generation = z.strictObject({
    num_generations: count.default(8),
    max_prompt_length: count.optional(),
    max_completion_length: count.default(512),
    engine: z.enum(['transformers', 'vllm_colocate', 'vllm_server']).default('transformers'),
    vllm_gpu_memory_utilization: z.number().min(0).max(1).default(0.3),
    vllm_enable_sleep_mode: z.boolean().default(false),
    beta: z.number().min(0).default(0),
  });

  const distributed = z.strictObject({
    nodes: count.default(1),
    processes_per_node: count.default(1),
    strategy: z
      .preprocess(wordNone, z.enum(['none', 'dp', 'ddp', 'zero1', 'zero2', 'zero3', 'fsdp1', 'fsdp2', 'hsdp']))
      .default('ddp'),
    offload: z
      .preprocess((value) => asList(wordNone(value)), z.array(z.enum(['optimizer', 'parameters', 'activations'])))
      .default([]),
  });

  /** Unquoted `2.13` is a number to YAML; `5.10` would lose its zero, which is why the examples quote them. */
  const version = z.preprocess((value) => (typeof value === 'number' ? String(value) : value), text);

  const policy = z.strictObject({
    mode: z.enum(['rewrite', 'refuse', 'warn']).optional(),
    allow: z.array(text).optional(),
    forbid: z.array(text).optional(),
    keep: z.array(text).optional(),
    max_retries: whole(0).optional(),
    headroom: z.number().min(0).max(0.9).optional(),
  });

  return z.strictObject({
    id: z.union([text, z.number()]).optional(),
    command: text.optional(),
    model: text.optional(),
    model_config: z.record(z.string(), z.unknown()).optional(),
    method: z.enum(['full', 'lora', 'qlora', 'dora', 'ia3', 'prompt_tuning', 'prefix_tuning']).optional(),
    objective: z
      .enum(['sft', 'clm', 'dpo', 'kto', 'orpo', 'reward', 'grpo', 'rloo', 'classification', 'seq2seq'])
      .optional(),
    dtype: dtype.optional(),
    mixed_precision: z.preprocess(wordNo, z.enum(['no', 'bf16', 'fp16'])).optional(),
    per_device_train_batch_size: count.optional(),
    per_device_eval_batch_size: count.optional(),
    eval: z.boolean().optional(),
    gradient_accumulation_steps: count.optional(),
    max_length: count.optional(),
    max_target_length: count.optional(),
    packing: z.boolean().optional(),
    padding_free: z.boolean().optional(),
    attention_mask: z.boolean().optional(),
    attn_implementation: z
      .enum(['eager', 'sdpa', 'flash_attention_2', 'flash_attention_3', 'flex_attention'])
      .optional(),
    gradient_checkpointing: checkpointing.optional(),
    optim: z.enum(OPTIMIZERS as [string, ...string[]]).optional(),
    optim_args: text.optional(),
    optim_target_modules: z.union([text, words], { error: 'expected all-linear or a list of module names' }).optional(),
    label_smoothing_factor: z.number().min(0).max(1).optional(),
    neftune_noise_alpha: z.number().min(0).optional(),
    torch_compile: z.boolean().optional(),
    max_grad_norm: z.number().min(0).optional(),
    quantization: quantization.optional(),
    lora: lora.optional(),
    ia3: ia3.optional(),
    prompt_tuning: promptTuning.optional(),
    generation: generation.optional(),
    precompute_ref_log_probs: z.boolean().optional(),
    distributed: distributed.optional(),
    dataloader_num_workers: whole(0).optional(),
    dataloader_pin_memory: z.boolean().optional(),
    versions: z
      .strictObject({
        torch: version.optional(),
        transformers: version.optional(),
        peft: version.optional(),
        trl: version.optional(),
        bitsandbytes: version.optional(),
      })
      .optional(),
    loss_impl: z.enum(['full', 'chunked', 'fused', 'fused_logits', 'chunked_logits']).optional(),
    fused_kernels: z.array(z.enum(['norm', 'rotary', 'gate', 'lora'])).optional(),
    optimizer_in_backward: z.boolean().optional(),
    output_dir: text.optional(),
    save_total_limit: count.nullable().optional(),
    resume: text.optional(),
    policy: policy.optional(),
  });
}

let built: ReturnType<typeof buildSchema> | undefined;

/**
 * The native launch config; every key optional here, what must be there depends on the command. Built when first asked for:
 * a launch without a native config does not pay for it.
 */
export function nativeSchema(): ReturnType<typeof buildSchema> {
  built ??= buildSchema();
  return built;
}

export type NativeValues = z.infer<ReturnType<typeof nativeSchema>>;
