import type { Lora } from '../../spec/index.ts';

/** `.*\\.q_proj`, `.*(q_proj|v_proj)$`: ends of module names, as patterns mostly are. */
const ENDING = /^\.\*(?:\\?\.)?\(?([\w|]+)\)?\$?$/;

/**
 * TRL takes a single word out of its list, and PEFT takes a word for `all-linear` or for a pattern that the whole name of a
 * module must match. Source: trl/trainer/model_config.py, peft/tuners/tuners_utils.py `check_target_module_exists`.
 */
export function readTargets(words: readonly string[]): Lora['targetModules'] {
  const [only] = words;
  if (words.length !== 1 || only === undefined) return words;
  if (only === 'all-linear') return only;
  return ENDING.exec(only)?.[1]?.split('|') ?? [only];
}

/** The list that TRL turns back into these targets. */
export function writeTargets(targets: Exclude<Lora['targetModules'], 'default'>): readonly string[] {
  if (targets === 'all-linear') return [targets];
  return targets.length === 1 ? [`.*\\.${targets[0]}`] : targets;
}
