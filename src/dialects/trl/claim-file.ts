import type { BareFile, FileClaim } from '../dialect.ts';
import { quoteCommand } from '../split-command.ts';
import { COMMANDS, FORMER, trlGrammar } from './fields.ts';

/** How a config of TRL is known when it is given alone. */
export const TRL_SIGN = 'model_name_or_path with the keys of SFTConfig, DPOConfig and their kin';

/** Keys of recipes whose own script mixes datasets: TRL's own command does not take them. */
const RECIPE_KEYS = ['dataset_mixture', 'dataset_mixer', 'chat_template', ...Object.keys(FORMER)];

/**
 * The keys may leave one trainer only (`packing` is SFT's, `num_generations` that of trainers that generate); where they do
 * not, the user has to say which.
 */
export function claimTrlFile({ path, values }: BareFile): FileClaim | undefined {
  if (path.endsWith('.json') || !values.has('model_name_or_path')) return undefined;
  const grammars = COMMANDS.map((command) => ({ command, fields: trlGrammar(command, false).fields }));
  const recipe = RECIPE_KEYS.some((key) => values.has(key));
  const known = [...values.keys()].filter((key) => grammars.some(({ fields }) => fields.has(key)));
  if ((known.length + (recipe ? 1 : 0)) * 2 <= values.size) return undefined;
  const fitting = grammars
    .filter(({ fields }) => known.every((key) => fields.has(key)))
    .map(({ command }) => command)
    // The file's name is a hint, no proof.
    .sort((a, b) => Number(path.includes(b)) - Number(path.includes(a)));
  if (recipe) {
    const argvs = fitting
      .slice(0, 1)
      .map((command) => ['accelerate', 'launch', `scripts/${command}.py`, '--config', path]);
    return {
      kind: 'unclear',
      what: 'a recipe in the words of TRL',
      commands: argvs.map(quoteCommand),
      ...presumed(argvs),
    };
  }
  const argvs = fitting.map((command) => ['trl', command, '--config', path]);
  const [only] = argvs;
  if (argvs.length === 1) return { kind: 'command', argv: only! };
  return {
    kind: 'unclear',
    what: 'a config of TRL',
    commands: argvs.slice(0, 3).map(quoteCommand),
    ...presumed(argvs),
  };
}

const presumed = ([first]: readonly (readonly string[])[]): { presumed?: readonly string[] } =>
  first ? { presumed: first } : {};
