import type { ReadContext } from '../contract.ts';
import type { Position } from '../dialect.ts';
import { configFile, startOfTrl, type TrlStart } from '../trl/detect.ts';

const SCRIPT = /(?:^|\/)(?:run_)?(?:sft|dpo|orpo|kto|grpo)\.py$/;

/** A TRL script that imports `alignment` or `open_r1`; unread, one named like theirs with a config below `recipes/`. */
export function startOfRecipe(position: Position, context: ReadContext): TrlStart | undefined {
  const start = startOfTrl(position, context);
  if (start?.form !== 'script') return undefined;
  const { text } = start.script;
  if (text !== undefined) return /\b(?:from|import)\s+(?:alignment|open_r1)\b/.test(text) ? start : undefined;
  if (position.target?.form === 'module')
    return /^(?:alignment|open_r1)\./.test(position.target.name) ? start : undefined;
  const config = configFile(position.argv, start.argsFrom);
  const recipe = config !== undefined && /(?:^|\/)recipes\//.test(position.argv[config]!);
  return recipe && SCRIPT.test(position.target!.name) ? start : undefined;
}
