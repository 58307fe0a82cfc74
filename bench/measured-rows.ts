import { readFileSync } from 'node:fs';
import type { FloatDType } from '../src/core/index.ts';
import { type Places, placesOf } from '../src/dialects/litgpt/adapter.ts';
import type { DeviceFacts } from '../src/memory/index.ts';
import type {
  Distributed,
  FusedKernel,
  GradientCheckpointing,
  PlanValues,
  Quantization,
  Versions,
} from '../src/spec/index.ts';
import { outOfScope } from './measured-scope.ts';

export type Counter = 'allocated' | 'reserved' | 'nvidia-smi' | 'unknown';

/** One published run; fields as in the README beside measured.jsonl. */
export interface MeasuredRow {
  readonly id: string;
  readonly source: string;
  readonly date: string | null;
  readonly trainer: string;
  readonly model: string;
  /** Billions. */
  readonly params_b: number | null;
  readonly method: string;
  readonly method_detail: Readonly<Record<string, unknown>>;
  readonly weights_dtype: string | null;
  readonly mixed_precision: string | null;
  readonly optimizer: string | null;
  readonly micro_batch: number | null;
  readonly grad_accum: number | null;
  readonly seq_len: number | null;
  readonly seq_kind: 'packed' | 'exact' | 'max with padding' | 'unknown';
  readonly attention: string | null;
  readonly grad_checkpointing: boolean | string | null;
  readonly extras: Readonly<Record<string, unknown>>;
  readonly gpu: string | null;
  readonly gpu_total_gib: number | null;
  readonly peak_gib: number;
  readonly peak_metric: Counter;
  readonly notes?: string;
}

export const readMeasuredRows = (path: string): MeasuredRow[] =>
  readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => inGib(JSON.parse(line) as MeasuredRow));

/** Qwen's "G" are 10^9 bytes: 162 G of its table are on two cards that have 79.3 GiB each. */
const inGib = (row: MeasuredRow): MeasuredRow =>
  /QwenLM\/Qwen /.test(row.source) ? { ...row, peak_gib: (row.peak_gib * 1e9) / 2 ** 30 } : row;

/** Repository a row was published in: the unit of the report. */
export const sourceOf = (row: MeasuredRow): string => {
  const [owner, name] = row.source.replace('https://github.com/', '').split(/[/ ]/);
  return `${owner}/${name}`;
};

export interface MeasuredPlan {
  readonly values: PlanValues;
  readonly device: DeviceFacts;
}

/**
 * The longest batch of the PEFT suite is the same in every run of it and not published. Fitted once, on the runs outside the list
 * of recommended ones, and held for all.
 */
const PEFT_SUITE_TOKENS = 712;

/** The plan a row stands for, or why it has none. What a source does not print is assumed here, by source, never by row. */
export function planOfMeasured(row: MeasuredRow): MeasuredPlan | string {
  const reason = outOfScope(row);
  if (reason) return reason;
  const versions = versionsOf(row);
  const optim = optimOf(row);
  const method = methodOf(row);
  if (!optim) return 'the optimizer is not known';
  if (!method) return `method ${row.method} is not one of snug.yaml`;
  const maxLength = tokensOf(row);
  if (!maxLength || !row.micro_batch) return 'batch or length is not known';
  const dtype = dtypeOf(row);
  const flash = /flash|xformers/i.test(row.attention ?? '') && !/^sdpa|off/i.test(row.attention ?? '');
  const quantization = quantizationOf(row);
  const litgpt = /litgpt/.test(row.source);
  if (typeof quantization === 'string') return quantization;
  const values: PlanValues = {
    objective: 'sft',
    method,
    dtype,
    mixedPrecision: precisionOf(row),
    perDeviceTrainBatchSize: row.micro_batch,
    perDeviceEvalBatchSize: 8,
    eval: false,
    // LitGPT's configs all accumulate.
    gradientAccumulationSteps: row.grad_accum ?? (litgpt ? 2 : 1),
    maxLength,
    packing: row.seq_kind === 'packed',
    paddingFree: row.seq_kind === 'packed' && flash && /axolotl|swift/.test(row.source),
    attentionMask: row.seq_kind === 'max with padding' && !flash && !litgpt,
    attnImplementation: flash ? 'flash_attention_2' : /^eager$/.test(row.attention ?? '') ? 'eager' : 'sdpa',
    gradientCheckpointing: checkpointingOf(row),
    optim,
    maxGradNorm: 1,
    optimizerInBackward: /optimizer_in_bwd/.test(row.optimizer ?? ''),
    quantization,
    lora: loraOf(row, dtype),
    ia3:
      method === 'ia3'
        ? {
            targetModules: row.method_detail.target_modules as string[],
            feedforwardModules: row.method_detail.feedforward_modules as string[],
            adapterDtype: 'fp32',
          }
        : null,
    distributed: distributedOf(row),
    dataloaderNumWorkers: 0,
    dataloaderPinMemory: true,
    lossImpl: lossOf(row),
    fusedKernels: kernelsOf(row),
    versions,
    ...(litgpt ? { ownModules: 'litgpt' } : {}),
    ...(/torchtune|torchtitan/.test(row.source) ? { syncsEachMicroBatch: true } : {}),
    // LitGPT's older scripts begin with their one longest row. fsdp_qlora's train.py has all rows of one length.
    ...((litgpt && row.seq_kind !== 'exact') || /fsdp_qlora/.test(row.source) ? { holdsLastLoss: true } : {}),
    torchCompile: row.extras.compile === true,
    saveTotalLimit: null,
    allocatorConf: row.extras.expandable_segments ? 'expandable_segments:True' : '',
  };
  return { values, device: deviceOf(row) };
}

function tokensOf(row: MeasuredRow): number | null {
  return /MetaMathQA/.test(row.source) ? PEFT_SUITE_TOKENS : row.seq_len;
}

function methodOf(row: MeasuredRow): PlanValues['method'] | undefined {
  switch (row.method) {
    case 'full':
    case 'lora':
    case 'qlora':
    case 'dora':
    case 'ia3':
      return row.method;
    default:
      return undefined;
  }
}

const version = (text: string, name: string): string | undefined =>
  new RegExp(`${name} v?(\\d+(?:\\.\\d+)*)`).exec(text)?.[1];

/** Printed versions; else what was current on the row's date. */
function versionsOf(row: MeasuredRow): Versions {
  const text = row.trainer;
  const old = (row.date ?? '2024') < '2024-07';
  return {
    torch:
      version(text, 'torch') ??
      /^(\d+\.\d+(?:\.\d+)?)/.exec(String(row.extras.torch ?? ''))?.[1] ??
      (old ? '2.1' : '2.5'),
    transformers: version(text, 'transformers') ?? (old ? '4.37' : '4.48'),
    peft: version(text, 'peft') ?? (/MetaMathQA/.test(row.source) ? '0.18' : old ? '0.7' : '0.13'),
    // LitGPT pinned 0.41 and 0.42 until 2025.
    ...(/litgpt/.test(row.source) ? { bitsandbytes: '0.42.0' } : {}),
    trl: version(text, 'trl') ?? (old ? '0.7' : '0.13'),
  };
}

function optimOf(row: MeasuredRow): string | undefined {
  const text = row.optimizer ?? '';
  if (/DeepSpeed AdamW|on CPU/.test(text)) return 'adamw_torch_fused';
  // torchtune's ladder: 8-bit states are part of what torch counts there, so they were not paged.
  if (/^PagedAdamW8bit/.test(text)) return 'adamw_bnb_8bit';
  if (/paged_?adamw_?8bit/i.test(text)) return 'paged_adamw_8bit';
  if (/paged_?adamw/i.test(text)) return 'paged_adamw_32bit';
  if (/torchao AdamW8bit|adamw_torch_8bit/.test(text)) return 'adamw_torch_8bit';
  if (/torchao AdamW4bit|adamw_torch_4bit/.test(text)) return 'adamw_torch_4bit';
  if (/8bit/i.test(text)) return 'adamw_bnb_8bit';
  if (/fused/.test(text)) return 'adamw_torch_fused';
  if (/adafactor/.test(text)) return 'adafactor';
  if (/^adamw/i.test(text) && !/low-bit/.test(text)) return 'adamw_torch';
  return undefined;
}

const dtypeOf = (row: MeasuredRow): FloatDType => {
  const text = row.weights_dtype ?? '';
  // FSDP2 of torchtitan keeps fp32 shards and computes in bf16.
  if (/^fp32$/.test(text)) return 'fp32';
  if (/float16|fp16$/.test(text) && !/bfloat16/.test(text)) return 'fp16';
  return 'bf16';
};

function precisionOf(row: MeasuredRow): PlanValues['mixedPrecision'] {
  const text = row.mixed_precision ?? 'none';
  if (/^none|\(true\)/.test(text)) return 'no';
  return /^fp16(?!\/bf16)/.test(text) ? 'fp16' : 'bf16';
}

/** Trainers on transformers before 5 leave torch's default, reentrant. */
function checkpointingOf(row: MeasuredRow): GradientCheckpointing {
  const enabled = row.grad_checkpointing === true;
  const useReentrant = !/litgpt|torchtune|torchtitan|\/ao|ml-engineering|axolotl|Liger-Kernel/i.test(row.source);
  const offload = row.extras.activation_offload === true || row.extras.activation_offloading === 'true';
  return { enabled, useReentrant, everyNLayers: 1, offload };
}

function quantizationOf(row: MeasuredRow): Quantization | null | string {
  if (row.method !== 'qlora' && !/8-bit|4-bit|int4|nf4/.test(String(row.method_detail.quant ?? row.weights_dtype)))
    return null;
  const detail = row.method_detail;
  const quant = String(detail.quant ?? row.weights_dtype ?? '');
  const gptq = /gptq|awq/i.test(quant) || /gptq|awq/i.test(row.weights_dtype ?? '');
  const eight = /8.?bit|int8/i.test(quant);
  const computeDtype = gptq || /fp16/.test(row.mixed_precision ?? '') ? 'fp16' : 'bf16';
  return {
    bits: eight ? 8 : 4,
    quantType: eight ? 'int8' : 'nf4',
    // GPTQ: half a byte a weight, one fp16 scale and one 4-bit zero a group of 128, close to double quantisation.
    doubleQuant:
      gptq || (detail.double_quant !== false && detail.double_quant !== undefined) || /axolotl/.test(row.source),
    computeDtype,
    // axolotl casts back what it has upcast when flash attention is on. TRL leaves the weights of a sharded QLoRA run as they are.
    upcastRestToFp32:
      (/fp32 upcast of/.test(String(detail.prep ?? '')) && !row.extras.fsdp) ||
      /swift|trl|huggingface\/peft/.test(row.source),
  };
}

/** Other trainers' names of the projections. */
const NAMES: Readonly<Record<string, readonly string[]>> = {
  query: ['q_proj'],
  key: ['k_proj'],
  value: ['v_proj'],
  projection: ['o_proj'],
  output_proj: ['o_proj'],
  mlp: ['gate_proj', 'up_proj', 'down_proj'],
  head: ['lm_head'],
};

function loraOf(row: MeasuredRow, dtype: FloatDType): PlanValues['lora'] {
  const { method_detail: detail } = row;
  if (!['lora', 'qlora', 'dora'].includes(row.method)) return null;
  const own = /litgpt|torchtune|fsdp_qlora/i.test(row.source);
  const asked = detail.target_modules;
  const list = Array.isArray(asked)
    ? (asked as string[])
    : typeof asked === 'string' && /^[a-z_ ]+_(proj|attn)[a-z_ ]*$/.test(asked)
      ? asked.split(' ')
      : /swift DEFAULT|c_attn/.test(String(asked))
        ? ['c_attn', 'q_proj', 'k_proj', 'v_proj']
        : undefined;
  const bf16 = own || /adapter bf16/.test(row.weights_dtype ?? '');
  return {
    r: Number(detail.r ?? 8),
    loraAlpha: 16,
    loraDropout: Number(detail.lora_dropout ?? detail.dropout ?? 0),
    targetModules: list ? list.flatMap((name) => named(row, name)) : 'all-linear',
    adapterDtype: bf16 ? dtype : 'fp32',
    modulesToSave: (detail.modules_to_save as string[] | undefined) ?? [],
  };
}

const named = ({ source, model }: MeasuredRow, name: string): readonly string[] =>
  (/litgpt/.test(source) ? placesOf(model)[`lora_${name}` as keyof Places] : undefined) ?? NAMES[name] ?? [name];

function distributedOf(row: MeasuredRow): Distributed {
  const ranks = Number(row.extras.world_size ?? 1) || 1;
  const { extras } = row;
  const fsdp = String(extras.fsdp ?? '');
  const zero = /ZeRO-?(\d)|zero(\d)/i.exec(String(extras.deepspeed ?? ''));
  const offload: Distributed['offload'][number][] = [];
  if (/on CPU|optimizer CPU offload/.test(`${row.optimizer} ${extras.deepspeed}`)) offload.push('optimizer');
  if (extras.cpu_offload_params === true || /CPU offload/i.test(fsdp)) offload.push('parameters', 'optimizer');
  const shape = (strategy: Distributed['strategy']): Distributed => ({
    nodes: 1,
    processesPerNode: ranks,
    strategy,
    offload,
  });
  if (zero) return shape(`zero${zero[1] ?? zero[2]}` as Distributed['strategy']);
  if (/NO_SHARD/.test(fsdp)) return shape('ddp');
  if (/FSDP2|fsdp v2|fsdp2/.test(fsdp)) return shape('fsdp2');
  if (extras.fsdp) return shape('fsdp1');
  return shape(ranks > 1 ? 'ddp' : 'none');
}

function lossOf(row: MeasuredRow): PlanValues['lossImpl'] {
  const { extras } = row;
  if (extras.liger_fused_ce !== true && extras.fused_ce_rms_rope_triton === true) return 'fused_logits';
  if (
    extras.liger_fused_ce === true ||
    extras.liger === true ||
    extras.cut_cross_entropy === true ||
    Array.isArray(extras.liger)
  )
    return 'fused';
  // Configs that torchtune ships name this loss; that of 405B names PyTorch's.
  const shipped = /torchtune/.test(row.source) && /llama3_1\/(8|70)B/.test(String(extras.config ?? ''));
  if (/chunked/.test(String(extras.loss ?? '')) || extras.lm_head_chunked === true || shipped) return 'chunked_logits';
  return 'full';
}

/** `foak` and its like: norms, rotary, LoRA without dropout; Liger: norms, rotary, gates; cut cross-entropy by itself: none. */
function kernelsOf(row: MeasuredRow): readonly FusedKernel[] {
  const { extras } = row;
  if (extras.fused_ce_rms_rope_triton === true)
    return row.method_detail.lora_dropout ? ['norm', 'rotary'] : ['norm', 'rotary', 'lora'];
  // Its example patched the classes after the model was made of them: functions and forward methods took effect, modules did not.
  if (/Liger-Kernel/.test(row.source) && extras.liger === true) return ['rotary'];
  if (extras.liger === true || Array.isArray(extras.liger)) return ['norm', 'rotary', 'gate'];
  return [];
}

const GENERATIONS: readonly (readonly [RegExp, number, number])[] = [
  [/B200|B100/, 10, 0],
  [/H100|H200|H20/, 9, 0],
  [/4090|L40|L4|A6000 ?Ada|40\d0/, 8, 9],
  [/3090|A10G|A6000|30\d0/, 8, 6],
  [/A100/, 8, 0],
  [/T4/, 7, 5],
  [/V100/, 7, 0],
];

function deviceOf(row: MeasuredRow): DeviceFacts {
  const found = GENERATIONS.find(([pattern]) => pattern.test(row.gpu ?? ''));
  return {
    ...(found ? { name: row.gpu!, computeCapability: { major: found[1], minor: found[2] } } : {}),
    ...(row.gpu_total_gib ? { capacityBytes: Math.round(row.gpu_total_gib * 2 ** 30) } : {}),
  };
}
