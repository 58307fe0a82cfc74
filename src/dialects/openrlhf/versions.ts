import type { Origin } from '../../spec/index.ts';
import type { Values } from '../hf-argparser/values.ts';
import { NAMES, OLD_SWITCHES } from './fields.ts';

/** What holds where a command says nothing, and how it spells its flags. */
export interface OpenRlhfVersion {
  readonly origin: Origin;
  /** Which of the two names of a field it takes. */
  readonly spelling: 0 | 1;
  readonly dtype: 'bf16' | 'fp16';
  readonly attention: 'flash_attention_2' | 'eager';
}

const version = (name: string, more: Omit<OpenRlhfVersion, 'origin'>): OpenRlhfVersion => ({
  origin: { kind: 'default', tool: 'openrlhf', version: name },
  ...more,
});

const DOTTED = version('0.11', { spelling: 0, dtype: 'bf16', attention: 'flash_attention_2' });
const FLAT = version('0.9', { spelling: 1, dtype: 'bf16', attention: 'flash_attention_2' });
/** Without `--bf16` it trains in fp16, without `--flash_attn` it asks for eager attention. */
const SWITCHED = version('0.7', { spelling: 1, dtype: 'fp16', attention: 'eager' });

/** The release that a command is written for, by the names of its flags. */
export function versionOf(values: Values): OpenRlhfVersion {
  if (values.find(...OLD_SWITCHES)) return SWITCHED;
  const flat = Object.values(NAMES).some(([now, before]) => now !== before && values.find(before) && !values.find(now));
  return flat ? FLAT : DOTTED;
}
