import type { Objective } from '../../spec/index.ts';

/** Recipes that do not train. Source: torchtune/_recipe_registry.py. */
const NOT_TRAINING = /(?:^|\/)(?:generate|generate_v2|generate_v2_distributed|eleuther_eval|quantize)$/;

/** What a recipe trains by its name, which a copy of it mostly keeps. */
export interface Recipe {
  /** As typed: a name, or the path of a copy. */
  readonly name: string;
  readonly distributed: boolean;
  readonly objective: Objective | null;
  /** By its name; undefined: the name does not say. */
  readonly lora: boolean | undefined;
  /** What of it is not estimated, a clause. */
  readonly notEstimated: string | undefined;
}

export function recipeOf(name: string): Recipe | undefined {
  const stem = name.replace(/\.py$/, '');
  if (NOT_TRAINING.test(stem)) return undefined;
  const last = stem.split(/[/.]/).at(-1)!;
  const has = (...words: readonly string[]): boolean => words.some((word) => last.includes(word));
  const generates = has('ppo', 'grpo');
  return {
    name,
    distributed: has('distributed'),
    objective: generates ? null : has('dpo') ? 'dpo' : 'sft',
    lora: has('lora', 'knowledge_distillation') ? true : has('full') ? false : undefined,
    notEstimated: generates
      ? 'generates while it trains, which is not estimated'
      : has('knowledge_distillation')
        ? 'holds a teacher model besides, which the estimate leaves out'
        : has('qat')
          ? 'trains with simulated quantization, whose copies the estimate leaves out'
          : undefined,
  };
}

/** The recipes of the library whose files people start by path. */
export const isRecipeFile = (path: string): boolean =>
  /(?:^|\/)(?:full|lora|qat|qat_lora|ppo_full|early_exit)_finetune_(?:single_device|distributed)\.py$|(?:^|\/)(?:(?:lora|full)_dpo|knowledge_distillation|qat)_(?:single_device|distributed)\.py$/.test(
    path,
  );
