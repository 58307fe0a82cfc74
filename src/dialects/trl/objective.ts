import type { Diagnostic } from '../../core/index.ts';
import { warning } from '../../core/index.ts';
import {
  formatOrigin,
  type LossImpl,
  type Objective,
  type Setting,
  type TrainingSpec,
  type TrainingValues,
} from '../../spec/index.ts';
import { orNull, toBoolean, toInteger, toNumber, toOneOf, toText } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import type { Command } from './fields.ts';
import type { TrlVersion } from './versions.ts';

/** distillation has no objective of its own among ours: a generating student trained on a teacher's tokens. */
export const OBJECTIVES: Readonly<Record<Command, Objective | null>> = {
  sft: 'sft',
  dpo: 'dpo',
  grpo: 'grpo',
  kto: 'kto',
  reward: 'reward',
  rloo: 'rloo',
  distillation: null,
};

/** Trainers that write their rows themselves: no length of the data bounds them but the completion's. */
export const GENERATES: ReadonlySet<Command> = new Set(['grpo', 'rloo', 'distillation']);

/** Config classes with `activation_offloading`. */
export const OFFLOADS: ReadonlySet<Command> = new Set(['sft', 'dpo', 'kto', 'reward']);

export const LENGTH_KEYS = ['max_length', 'max_seq_length'];

/** Tokens a row: `max_length`, or for a generating trainer the completion, prompts having no cap of their own. */
export function readLength(
  reader: SettingReader,
  command: Command,
  version: TrlVersion,
): { readonly setting: Setting<number>; readonly diagnostics: readonly Diagnostic[] } {
  const { origin } = version;
  if (GENERATES.has(command)) return readCompletion(reader, version);
  const read = reader.setting<number | null>(LENGTH_KEYS, orNull(toInteger(1)), { value: 1024, origin });
  const found = reader.values.find(...LENGTH_KEYS);
  const unbounded = found !== undefined && read.value === null && orNull(toInteger(1))(found.raw).ok;
  return {
    setting: { value: read.value, origin: read.origin },
    diagnostics: unbounded
      ? [
          warning('unbounded-rows', 'max_length is none, so the longest row of the data decides the memory', {
            location: formatOrigin(read.origin),
            help: 'give max_length a number of tokens',
          }),
        ]
      : [],
  };
}

function readCompletion(reader: SettingReader, { origin }: TrlVersion): ReturnType<typeof readLength> {
  const completion = reader.setting(['max_completion_length'], toInteger(1), { value: 512, origin });
  const prompt = reader.given(['max_prompt_length'], orNull(toInteger(1)));
  if (prompt?.value && completion.value !== null) {
    return { setting: { value: completion.value + prompt.value, origin: completion.origin }, diagnostics: [] };
  }
  return {
    setting: completion,
    diagnostics: [
      warning('prompts-not-counted', 'rows are taken as long as the completions: prompts have no cap and come on top', {
        location: formatOrigin(completion.origin),
      }),
    ],
  };
}

/** What the preference trainers leave out of a step, and how the generating ones make their rows. Source: trl 1.13 configs. */
export function readRows(
  reader: SettingReader,
  command: Command,
  { origin }: TrlVersion,
  length: Setting<number>,
): TrainingSpec {
  if (command === 'dpo' || command === 'kto') {
    const precomputed = reader.given(['precompute_ref_log_probs'], toBoolean);
    return precomputed ? { precomputeRefLogProbs: precomputed } : {};
  }
  if (command !== 'grpo' && command !== 'rloo') return {};
  reader.note(
    'vllm_mode',
    'vllm_max_model_length',
    'vllm_tensor_parallel_size',
    'max_prompt_length',
    'max_completion_length',
  );
  const own = <T>(key: string, convert: Parameters<typeof reader.setting<T>>[1], value: T): T | null =>
    reader.setting<T>([key], convert, { value, origin }).value;
  const completion = own('max_completion_length', toInteger(1), 512);
  const engine = own('use_vllm', toBoolean, false)
    ? own('vllm_mode', toOneOf('colocate', 'server'), 'colocate') === 'server'
      ? 'vllm_server'
      : 'vllm_colocate'
    : 'transformers';
  const value = {
    numGenerations: own('num_generations', toInteger(2), command === 'rloo' ? 2 : 8),
    maxPromptLength: completion === null ? null : Math.max(1, (length.value ?? completion) - completion),
    maxCompletionLength: completion,
    engine,
    vllmGpuMemoryUtilization: own('vllm_gpu_memory_utilization', toNumber, 0.3),
    vllmEnableSleepMode: own('vllm_enable_sleep_mode', toBoolean, false),
    beta: own('beta', toNumber, command === 'rloo' ? 0.05 : 0),
  };
  const known = Object.values(value).every((part) => part !== null);
  return {
    generation: {
      value: known ? (value as TrainingValues['generation']) : null,
      origin: reader.values.find('max_completion_length')?.origin ?? origin,
    },
  };
}

/** Packing and the padding it avoids. Source: sft_trainer.py `self.padding_free`. */
export function readPacking(reader: SettingReader, command: Command, { origin }: TrlVersion): TrainingSpec {
  if (command !== 'sft') {
    const free = reader.setting(['padding_free'], toBoolean, { value: false, origin });
    return {
      paddingFree: free,
      attentionMask: { value: free.value === null ? null : !free.value, origin: free.origin },
    };
  }
  reader.note('eval_packing', 'pad_to_multiple_of');
  const packing = reader.setting(['packing'], toBoolean, { value: false, origin });
  const strategy = reader.setting(['packing_strategy'], toText, { value: 'bfd', origin });
  const asked = reader.setting(['padding_free'], toBoolean, { value: false, origin });
  const flattens = packing.value === true && (strategy.value ?? 'bfd').startsWith('bfd');
  const paddingFree = flattens ? { value: true, origin: packing.origin } : asked;
  return {
    packing,
    paddingFree,
    attentionMask: { value: paddingFree.value === null ? null : !paddingFree.value, origin: paddingFree.origin },
  };
}

/** Whether the logits of all tokens are ever held. `fused`: what TrainingArguments said (use_liger_kernel). */
export function readLoss(
  reader: SettingReader,
  command: Command,
  version: TrlVersion,
  read: Setting<LossImpl> | undefined,
): Setting<LossImpl> {
  reader.note('loss_type');
  if (read?.value === 'fused') return read;
  const { origin } = version;
  if (command !== 'sft') return { value: 'full', origin };
  const type = reader.given(['loss_type'], orNull(toText));
  if (!type?.value) return { value: version.sftLoss, origin };
  return { value: type.value === 'chunked_nll' ? 'chunked' : 'full', origin: type.origin };
}
