import { readFileSync } from 'node:fs';
import type { FloatDType, Result } from '../src/core/index.ts';
import { estimateMemory, type MemoryEstimate } from '../src/memory/index.ts';
import { describeModel } from '../src/model/index.ts';
import type { PlanValues } from '../src/spec/index.ts';

/** One traced step; fields as in the README beside peaks.jsonl. */
export interface ReferenceRow {
  readonly id: string;
  readonly arch?: string;
  readonly config: Readonly<Record<string, unknown>>;
  readonly method: 'full' | 'lora' | 'qlora';
  readonly dtype: FloatDType;
  readonly amp?: 'bf16' | 'fp16';
  readonly quant?: 'nf4';
  readonly double_quant?: boolean;
  readonly kbit_prepare?: boolean;
  readonly compute_dtype?: FloatDType;
  readonly rank?: number;
  readonly targets?: 'all-linear' | readonly string[];
  readonly dropout?: number;
  readonly peft?: 'dora' | 'ia3';
  readonly modules_to_save?: readonly string[];
  readonly adapter_fp32?: boolean;
  /** Class of the model: AutoModelForCausalLM unless said otherwise. */
  readonly class?: 'causal' | 'seqcls' | 'seq2seq' | 'itt' | 'speech';
  /** Tokens of a target row (seq2seq). */
  readonly target?: number;
  readonly ckpt: boolean;
  readonly reentrant?: boolean;
  readonly loss?: 'chunked';
  readonly optim: string;
  readonly batch: number;
  readonly seq: number;
  readonly accum?: number;
  readonly padded?: boolean;
  readonly attn?: PlanValues['attnImplementation'];
  readonly params: number;
  readonly trainable: number;
  readonly weights_bytes: number;
  readonly saved_bytes: number;
  readonly resident_bytes: number;
  readonly peak_bytes: number;
  readonly peak_phase: string;
  readonly phase_peak_bytes: Readonly<Record<string, number>>;
}

export function readReferenceRows(path: string): ReferenceRow[] {
  return readFileSync(path, 'utf8')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line) as ReferenceRow & { error?: string })
    .filter((row) => row.error === undefined);
}

/** The plan a traced row stands for. No clipping there. */
export function planOf(row: ReferenceRow): PlanValues {
  const adapterDtype = (row.adapter_fp32 ?? true) ? 'fp32' : row.dtype;
  const adapted = row.method !== 'full';
  return {
    objective:
      row.class === 'seqcls' ? 'classification' : row.class === 'seq2seq' || row.class === 'speech' ? 'seq2seq' : 'clm',
    maxTargetLength: row.target ?? null,
    method: row.peft ?? row.method,
    dtype: row.dtype,
    mixedPrecision: row.amp ?? 'no',
    perDeviceTrainBatchSize: row.batch,
    perDeviceEvalBatchSize: 8,
    eval: false,
    gradientAccumulationSteps: row.accum ?? 1,
    maxLength: row.seq,
    packing: false,
    paddingFree: false,
    attentionMask: row.padded ?? false,
    attnImplementation: row.attn ?? 'sdpa',
    gradientCheckpointing: {
      enabled: row.ckpt,
      useReentrant: row.reentrant ?? false,
      everyNLayers: 1,
      offload: false,
    },
    optim: row.optim,
    maxGradNorm: 0,
    quantization:
      row.quant === 'nf4'
        ? {
            bits: 4,
            quantType: 'nf4',
            doubleQuant: row.double_quant ?? true,
            computeDtype: row.compute_dtype ?? 'bf16',
            upcastRestToFp32: row.kbit_prepare ?? true,
          }
        : null,
    lora:
      adapted && row.peft !== 'ia3'
        ? {
            r: row.rank ?? 16,
            loraAlpha: 32,
            loraDropout: row.dropout ?? 0,
            targetModules: row.targets ?? 'all-linear',
            adapterDtype,
            modulesToSave: row.modules_to_save ?? [],
          }
        : null,
    ia3:
      row.peft === 'ia3'
        ? {
            targetModules: ['k_proj', 'v_proj', 'down_proj'],
            feedforwardModules: ['down_proj'],
            adapterDtype,
          }
        : null,
    distributed: { nodes: 1, processesPerNode: 1, strategy: 'none', offload: [] },
    dataloaderNumWorkers: 0,
    dataloaderPinMemory: true,
    lossImpl: row.loss ?? 'full',
    versions: { torch: '2.13', transformers: '5.17', peft: '0.21', trl: '1.13' },
    saveTotalLimit: null,
    allocatorConf: '',
  };
}

/** Our estimate of a traced step, from its config.json alone. */
export function estimateOf(row: ReferenceRow): Result<MemoryEstimate> {
  const facts = describeModel(row.config);
  return facts.ok ? estimateMemory(planOf(row), facts.value) : facts;
}
