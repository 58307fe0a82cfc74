import type { ReadContext } from '../contract.ts';
import type { Claim, Position } from '../dialect.ts';
import { readScript } from '../hf-trainer/script.ts';
import { programName } from '../scan-options.ts';
import { isRecipeFile, recipeOf } from './recipes.ts';
import { scanTune } from './tune.ts';

/** How torchtune is started. */
export interface TorchtuneStart {
  readonly claim: Claim;
  /** `cli`: `tune run`, which starts the processes; `script`: the file of a recipe, started by somebody else. */
  readonly form: 'cli' | 'script';
  /** First token after `tune run`, where options of torchrun stand; that of the recipe in the other form. */
  readonly optionsFrom: number;
}

const MODULES = ['torchtune._cli.tune', 'torchtune'];

/** `tune run`, and recipes that a launcher starts by their path. */
export function startOfTorchtune(position: Position, context: ReadContext): TorchtuneStart | undefined {
  const { argv, index, target } = position;
  if (!target) {
    const name = argv[index];
    if (name === undefined || programName(name) !== 'tune' || argv[index + 1] !== 'run') return undefined;
    return trains(argv, { claim: { from: index, to: argv.length }, form: 'cli', optionsFrom: index + 2 });
  }
  const claim: Claim = { from: target.index, to: argv.length };
  if (target.form === 'module' && MODULES.includes(target.name) && argv[target.argsFrom] === 'run') {
    return trains(argv, { claim, form: 'cli', optionsFrom: target.argsFrom + 1 });
  }
  if (target.form !== 'script' || !argv.slice(target.argsFrom).includes('--config')) return undefined;
  const { text } = readScript(target, context);
  const isRecipe =
    text === undefined
      ? isRecipeFile(target.name)
      : /\b(?:from|import)\s+torchtune\b/.test(text) && /\.parse\b/.test(text);
  return isRecipe ? { claim, form: 'script', optionsFrom: target.index } : undefined;
}

function trains(argv: readonly string[], start: TorchtuneStart): TorchtuneStart | undefined {
  const { recipe } = scanTune(argv, start.optionsFrom);
  return recipe !== undefined && recipeOf(argv[recipe]!) === undefined ? undefined : start;
}
