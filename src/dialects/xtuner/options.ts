import type { OptionTable } from '../scan-options.ts';

/** Options of `xtuner train`. Source: xtuner/tools/train.py of 0.2.0. */
export const XTUNER_OPTIONS: OptionTable = {
  flags: [],
  values: ['--work-dir', '--deepspeed', '--resume', '--seed', '--cfg-options', '--launcher', '--local_rank'],
  style: 'argparse-abbreviated',
};

/** DeepSpeed configs that come with XTuner, by name: stage, and whether optimizer and parameters are offloaded. */
export const BUILTIN_DEEPSPEED: Readonly<
  Record<
    string,
    { readonly strategy: 'zero1' | 'zero2' | 'zero3'; readonly offload: readonly ('optimizer' | 'parameters')[] }
  >
> = {
  deepspeed_zero1: { strategy: 'zero1', offload: [] },
  deepspeed_zero2: { strategy: 'zero2', offload: [] },
  deepspeed_zero2_offload: { strategy: 'zero2', offload: ['optimizer'] },
  deepspeed_zero3: { strategy: 'zero3', offload: [] },
  deepspeed_zero3_offload: { strategy: 'zero3', offload: ['optimizer', 'parameters'] },
};
