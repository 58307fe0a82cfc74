import type { Claim, Position } from '../dialect.ts';

/** What OpenRLHF trains, by the module that is started. */
export const TASKS = ['sft', 'dpo', 'rm', 'kto', 'kd', 'prm', 'ppo_ray'] as const;
export type Task = (typeof TASKS)[number];

export interface OpenRlhfStart {
  readonly claim: Claim;
  readonly argsFrom: number;
  readonly task: Task;
}

/** `-m openrlhf.cli.train_sft`, `openrlhf/cli/train_dpo.py`, and the scripts below `examples` that came before. */
export function startOfOpenRlhf({ argv, target }: Position): OpenRlhfStart | undefined {
  if (!target || target.form === 'program') return undefined;
  const path = target.form === 'module' ? target.name.replaceAll('.', '/') : target.name.replace(/\.py$/, '');
  const name = /(?:^|\/)openrlhf\/cli\/train_(\w+)$/.exec(path)?.[1];
  const task = TASKS.find((each) => each === name);
  return task && { claim: { from: target.index, to: argv.length }, argsFrom: target.argsFrom, task };
}
