import type { ReadContext } from '../contract.ts';
import type { Claim, Position } from '../dialect.ts';
import { readScript } from '../hf-trainer/script.ts';
import { programName } from '../scan-options.ts';

/** How axolotl is started. */
export interface AxolotlStart {
  readonly claim: Claim;
  readonly argsFrom: number;
  /** `cli`: its own command, which starts a launcher; `module`: something else has started this process. */
  readonly form: 'cli' | 'module';
}

const CLI_MODULES = ['axolotl.cli.main', 'axolotl.cli', 'axolotl'];

/** `axolotl train`, `-m axolotl.cli.train`, and `scripts/finetune.py` of older releases. */
export function startOfAxolotl(position: Position, context: ReadContext): AxolotlStart | undefined {
  const { argv, index, target } = position;
  if (!target) {
    const name = argv[index];
    if (name === undefined || programName(name) !== 'axolotl' || argv[index + 1] !== 'train') return undefined;
    return { claim: { from: index, to: argv.length }, argsFrom: index + 2, form: 'cli' };
  }
  const claim: Claim = { from: target.index, to: argv.length };
  if (target.form === 'module') {
    if (target.name === 'axolotl.cli.train') return { claim, argsFrom: target.argsFrom, form: 'module' };
    const own = CLI_MODULES.includes(target.name) && argv[target.argsFrom] === 'train';
    return own ? { claim, argsFrom: target.argsFrom + 1, form: 'cli' } : undefined;
  }
  if (target.form !== 'script') return undefined;
  const { text } = readScript(target, context);
  const isScript =
    text === undefined
      ? /(?:^|\/)scripts\/finetune\.py$|(?:^|\/)axolotl\/cli\/train\.py$/.test(target.name) &&
        takesYaml(argv, target.argsFrom)
      : /\b(?:from|import)\s+axolotl\.cli\b/.test(text);
  return isScript ? { claim, argsFrom: target.argsFrom, form: 'module' } : undefined;
}

const takesYaml = (argv: readonly string[], from: number): boolean =>
  argv.slice(from).some((token) => /\.ya?ml$/.test(token));
