import type { Setting } from '../spec/index.ts';
import type { ReadContext } from './contract.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Both names are one setting to PyTorch; the newer is looked at first. Source: c10/core/AllocatorConfig.cpp. */
export const ALLOCATOR_NAMES = ['PYTORCH_ALLOC_CONF', 'PYTORCH_CUDA_ALLOC_CONF'] as const;

/** The allocator setting as the trainer will see it; undefined: none. */
export function allocatorSetting(environment: Environment): Setting<string> | undefined {
  const name = ALLOCATOR_NAMES.find((each) => environment[each]);
  return name ? { value: environment[name]!, origin: { kind: 'env', name } } : undefined;
}

/** `a:1,b:2` with the keys of `added` in place of the same keys before, the others kept. */
export function mergeAllocatorConf(before: string | undefined, added: string): string {
  const key = (option: string): string => option.split(':')[0]!.trim();
  // Brackets hold commas of their own: roundup_power2_divisions:[256:1,512:2].
  const options = (text: string): string[] => text.split(/,(?![^[]*\])/).filter((option) => option.trim() !== '');
  const fresh = options(added);
  const keys = new Set(fresh.map(key));
  const kept = options(before ?? '').filter((option) => !keys.has(key(option)));
  const known = new Map(options(before ?? '').map((option) => [key(option), option]));
  if (fresh.every((option) => known.get(key(option)) === option)) return before ?? added;
  return [...kept, ...fresh].join(',');
}

/** GPUs that a program with this environment sees: the machine's, or as many as CUDA_VISIBLE_DEVICES names. */
export function visibleIn(environment: Environment, context: ReadContext): number | undefined {
  const list = environment.CUDA_VISIBLE_DEVICES;
  if (list === undefined || list === context.environment.CUDA_VISIBLE_DEVICES) return context.visibleGpus;
  const ids = list.split(',').map((id) => id.trim());
  // CUDA stops at the first name that is no device; an empty list and -1 hide every GPU.
  const end = ids.findIndex((id) => !/^(?:\d+|GPU-[\w-]+|MIG-[\w/-]+)$/.test(id));
  return end < 0 ? ids.length : end;
}
