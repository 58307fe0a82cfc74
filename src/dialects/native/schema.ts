import * as z from 'zod/mini';
import { type FloatDType, parseFloatDType } from '../../core/index.ts';
import { OPTIMIZERS } from '../hf-trainer/fields.ts';

/** PyYAML-like readers turn `no` into false before anyone can ask. */
const wordNo = (value: unknown): unknown => (value === false ? 'no' : value);
const wordNone = (value: unknown): unknown => (value === null ? 'none' : value);
const asList = (value: unknown): unknown => (typeof value === 'string' ? (value === 'none' ? [] : [value]) : value);

/** A value is made plain first, then held against the schema. */
const after = <Out>(plain: (value: unknown) => unknown, schema: z.ZodMiniType<Out, unknown>) =>
  z.pipe(z.transform(plain), schema);

function buildSchema() {
  const whole = (least: number) => {
    const error = `expected a whole number from ${least}`;
    return z.int({ error }).check(z.gte(least, { error }));
  };
  const count = whole(1);
  const text = z.string().check(z.minLength(1));
  const words = z.array(text);
  const yes = z.boolean();
  const from0 = z.number().check(z.gte(0));
  const upTo = (most: number) => z.number().check(z.gte(0), z.lte(most));

  /** `bf16`, and the long names that PyTorch and configs use. */
  const dtype = after(
    (value) => (typeof value === 'string' ? (parseFloatDType(value) ?? value) : value),
    z.enum(['fp32', 'bf16', 'fp16'] satisfies FloatDType[]),
  );

  const adapterTargets = z.union([text, words], { error: 'expected all-linear or a list of module names' });

  const checkpointing = after(
    (value) => (typeof value === 'boolean' ? { enabled: value } : value),
    z.strictObject({
      enabled: z._default(yes, true),
      use_reentrant: z._default(yes, false),
      every_n_layers: z._default(count, 1),
      offload: z._default(yes, false),
    }),
  );

  const quantization = z.nullable(
    z.strictObject({
      bits: z._default(z.union([z.literal(4), z.literal(8)], { error: 'expected 4 or 8' }), 4),
      quant_type: z.optional(z.enum(['nf4', 'fp4', 'int8'])),
      double_quant: z._default(yes, true),
      compute_dtype: z._default(dtype, 'bf16'),
      upcast_rest_to_fp32: z._default(yes, true),
    }),
  );

  const lora = z.strictObject({
    r: z._default(count, 16),
    lora_alpha: z._default(from0, 32),
    lora_dropout: z._default(upTo(1), 0),
    target_modules: z._default(adapterTargets, 'all-linear'),
    adapter_dtype: z._default(dtype, 'fp32'),
    modules_to_save: z._default(words, []),
  });

  const ia3 = z.strictObject({
    target_modules: z._default(words, ['k_proj', 'v_proj', 'down_proj']),
    feedforward_modules: z._default(words, ['down_proj']),
    adapter_dtype: z._default(dtype, 'fp32'),
  });

  const promptTuning = z.strictObject({
    num_virtual_tokens: z._default(count, 20),
    projection_hidden_size: z.optional(count),
  });

  const generation = z.strictObject({
    num_generations: z._default(count, 8),
    max_prompt_length: z.optional(count),
    max_completion_length: z._default(count, 512),
    engine: z._default(z.enum(['transformers', 'vllm_colocate', 'vllm_server']), 'transformers'),
    vllm_gpu_memory_utilization: z._default(upTo(1), 0.3),
    vllm_enable_sleep_mode: z._default(yes, false),
    beta: z._default(from0, 0),
  });

  const distributed = z.strictObject({
    nodes: z._default(count, 1),
    processes_per_node: z._default(count, 1),
    strategy: z._default(
      after(wordNone, z.enum(['none', 'dp', 'ddp', 'zero1', 'zero2', 'zero3', 'fsdp1', 'fsdp2', 'hsdp'])),
      'ddp',
    ),
    offload: z._default(
      after((value) => asList(wordNone(value)), z.array(z.enum(['optimizer', 'parameters', 'activations']))),
      [],
    ),
  });

  /** Unquoted `2.13` is a number to YAML; `5.10` would lose its zero, which is why the examples quote them. */
  const version = after((value) => (typeof value === 'number' ? String(value) : value), text);

  const policy = z.strictObject({
    mode: z.optional(z.enum(['rewrite', 'refuse', 'warn'])),
    allow: z.optional(words),
    forbid: z.optional(words),
    keep: z.optional(words),
    max_retries: z.optional(whole(0)),
    headroom: z.optional(upTo(0.9)),
  });

  return z.strictObject({
    id: z.optional(z.union([text, z.number()])),
    command: z.optional(text),
    model: z.optional(text),
    model_config: z.optional(z.record(z.string(), z.unknown())),
    method: z.optional(z.enum(['full', 'lora', 'qlora', 'dora', 'ia3', 'prompt_tuning', 'prefix_tuning'])),
    objective: z.optional(
      z.enum(['sft', 'clm', 'dpo', 'kto', 'orpo', 'reward', 'grpo', 'rloo', 'classification', 'seq2seq']),
    ),
    dtype: z.optional(dtype),
    mixed_precision: z.optional(after(wordNo, z.enum(['no', 'bf16', 'fp16']))),
    per_device_train_batch_size: z.optional(count),
    per_device_eval_batch_size: z.optional(count),
    eval: z.optional(yes),
    gradient_accumulation_steps: z.optional(count),
    max_length: z.optional(count),
    max_target_length: z.optional(count),
    packing: z.optional(yes),
    padding_free: z.optional(yes),
    attention_mask: z.optional(yes),
    attn_implementation: z.optional(
      z.enum(['eager', 'sdpa', 'flash_attention_2', 'flash_attention_3', 'flex_attention']),
    ),
    gradient_checkpointing: z.optional(checkpointing),
    optim: z.optional(z.enum(OPTIMIZERS as [string, ...string[]])),
    optim_args: z.optional(text),
    optim_target_modules: z.optional(adapterTargets),
    label_smoothing_factor: z.optional(upTo(1)),
    neftune_noise_alpha: z.optional(from0),
    torch_compile: z.optional(yes),
    max_grad_norm: z.optional(from0),
    quantization: z.optional(quantization),
    lora: z.optional(lora),
    ia3: z.optional(ia3),
    prompt_tuning: z.optional(promptTuning),
    generation: z.optional(generation),
    precompute_ref_log_probs: z.optional(yes),
    distributed: z.optional(distributed),
    dataloader_num_workers: z.optional(whole(0)),
    dataloader_pin_memory: z.optional(yes),
    versions: z.optional(
      z.strictObject({
        torch: z.optional(version),
        transformers: z.optional(version),
        peft: z.optional(version),
        trl: z.optional(version),
        bitsandbytes: z.optional(version),
        fla: z.optional(version),
        mamba_ssm: z.optional(version),
        causal_conv1d: z.optional(version),
      }),
    ),
    loss_impl: z.optional(z.enum(['full', 'chunked', 'fused', 'fused_logits', 'chunked_logits'])),
    fused_kernels: z.optional(z.array(z.enum(['norm', 'rotary', 'gate', 'lora']))),
    optimizer_in_backward: z.optional(yes),
    syncs_each_micro_batch: z.optional(yes),
    output_dir: z.optional(text),
    save_total_limit: z.optional(z.nullable(count)),
    resume: z.optional(text),
    policy: z.optional(policy),
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
