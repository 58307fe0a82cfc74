import type { ReadContext } from '../contract.ts';
import type { Claim, Position } from '../dialect.ts';
import { type OptionScan, type OptionTable, programName, scanOptions } from '../scan-options.ts';

/** How LLM Foundry is started. */
export interface FoundryStart {
  readonly claim: Claim;
  /** Token of the YAML file. */
  readonly config: number;
  /** Options of `composer`; undefined: something else starts the processes. */
  readonly composer?: OptionScan;
  readonly via?: 'cli';
}

/** Source: composer/cli/launcher.py of 0.32. */
const COMPOSER: OptionTable = {
  flags: ['-v|--verbose', '-m|--module_mode', '-c|--command_mode'],
  values: [
    '-n|--nproc',
    '--stdout',
    '--stderr',
    '--world_size',
    '--base_rank',
    '--node_rank',
    '--master_addr',
    '--master_port',
  ],
  style: 'argparse-abbreviated',
};

const OWN_KEYS = /^(?:device_train_microbatch_size|global_train_batch_size|train_loader)[ \t]*:/m;

/** `composer train/train.py FILE k=v`, `llmfoundry train FILE`, or its train.py under another launcher. */
export function startOfFoundry(position: Position, context: ReadContext): FoundryStart | undefined {
  const { argv, index, target } = position;
  if (!target) {
    const program = programName(argv[index] ?? '');
    if (program === 'llmfoundry') return cliStart(argv, index, index);
    if (program !== 'composer') return undefined;
    const composer = scanOptions(argv, index + 1, COMPOSER);
    if (composer.stuck) return undefined;
    const inner = startAt(argv, composer.next, context);
    return inner && { ...inner, claim: { from: index, to: argv.length }, composer, via: 'cli' };
  }
  if (target.form === 'program') return cliStart(argv, target.index, target.index);
  return startAt(argv, target.index, context);
}

function cliStart(argv: readonly string[], from: number, at: number): FoundryStart | undefined {
  if (programName(argv[at] ?? '') !== 'llmfoundry' || argv[at + 1] !== 'train') return undefined;
  return { claim: { from, to: argv.length }, config: at + 2, via: 'cli' };
}

/** A script whose first argument is a YAML file in LLM Foundry's words; a file that cannot be read counts by the script's name. */
function startAt(argv: readonly string[], at: number, context: ReadContext): FoundryStart | undefined {
  const command = cliStart(argv, at, at);
  if (command) return command;
  const [script = '', path = ''] = argv.slice(at, at + 2);
  if (!/\.py$|^llmfoundry\./.test(script) || !/\.ya?ml$/.test(path)) return undefined;
  const source = context.source(path);
  const known = source.ok ? OWN_KEYS.test(source.value.text) : /(?:^|\/)train\/train\.py$/.test(script);
  return known ? { claim: { from: at, to: argv.length }, config: at + 1 } : undefined;
}
