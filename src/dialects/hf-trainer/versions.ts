import type { Origin } from '../../spec/index.ts';
import { defaultOf, type FoundVersions, isSince, type SinceRow, valueIn } from '../versions.ts';
import { TRANSFORMERS } from './fields.ts';

/** What a version of transformers takes where the launch says nothing. */
export interface TransformersVersion {
  readonly origin: Extract<Origin, { kind: 'default' }>;
  readonly optim: string;
  /** What `from_pretrained` loads without a dtype. */
  readonly dtype: 'auto' | 'fp32';
  /** Checkpointing without kwargs. */
  readonly useReentrant: boolean;
  /** `fsdp` without a version in `fsdp_config`. */
  readonly fsdpVersion: 1 | 2;
  /** Whether `sync_each_batch` of `accelerator_config` is heeded. */
  readonly heedsSyncEachBatch: boolean;
}

type Rows<T> = readonly [SinceRow<T>, ...SinceRow<T>[]];

/** Source: training_args.py (`default_optim`, with torch 2.8 or newer). */
const OPTIM: Rows<string> = [
  { since: '0', value: 'adamw_torch' },
  { since: '4.54', value: 'adamw_torch_fused' },
];
/** Source: modeling_utils.py `from_pretrained`. */
const DTYPE: Rows<'auto' | 'fp32'> = [
  { since: '0', value: 'fp32' },
  { since: '5.0', value: 'auto' },
];
/** Source: modeling_utils.py `gradient_checkpointing_enable`. */
const REENTRANT: Rows<boolean> = [
  { since: '0', value: true },
  { since: '5.0', value: false },
];
/** Source: training_args.py `_process_fsdp_args`; before, accelerate's own default. */
const FSDP: Rows<1 | 2> = [
  { since: '0', value: 1 },
  { since: '5.0', value: 2 },
];

/** Source: trainer.py, through `Accelerator.accumulate` at first, then not (4.46 to 5.1), then looked at again. */
const SYNC_EACH_BATCH: Rows<boolean> = [
  { since: '0', value: true },
  { since: '4.46', value: false },
  { since: '5.2', value: true },
];

/** Defaults of the transformers that the launch uses; of the newest known where that cannot be found. */
export function transformersIn(versions: FoundVersions | undefined): TransformersVersion {
  const origin = defaultOf('transformers', versions, TRANSFORMERS.version);
  const { version } = origin;
  const torch = versions?.torch?.version;
  const fused = torch === undefined || isSince(torch, '2.8') || isSince(version, '5.0');
  return {
    origin,
    optim: fused ? valueIn(OPTIM, version) : 'adamw_torch',
    dtype: valueIn(DTYPE, version),
    useReentrant: valueIn(REENTRANT, version),
    fsdpVersion: valueIn(FSDP, version),
    heedsSyncEachBatch: valueIn(SYNC_EACH_BATCH, version),
  };
}
