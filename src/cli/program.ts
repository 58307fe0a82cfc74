import { Command, InvalidArgumentError, Option } from 'commander';
import packageJson from '../../package.json' with { type: 'json' };
import { parseBytes } from '../core/index.ts';
import type { CheckFormat } from '../report/index.ts';
import { LEVER_CLASSES } from '../spec/index.ts';

/** What commander hands to the preflight commands. */
export interface PreflightFlags {
  readonly gpu?: string;
  readonly model?: string;
  readonly online?: boolean;
  readonly mode?: 'rewrite' | 'refuse' | 'warn';
  readonly allow?: readonly string[];
  readonly forbid?: readonly string[];
  readonly keep?: readonly string[];
  readonly headroom?: number;
  readonly set?: readonly string[];
  readonly json?: boolean;
  readonly quiet?: boolean;
}

export interface RunFlags extends PreflightFlags {
  readonly retries?: number;
  readonly dryRun?: boolean;
  readonly ask?: boolean;
  /** `true`: without a folder. */
  readonly continue?: string | true;
  readonly logLimit?: number;
  /** Seconds. */
  readonly grace?: number;
  /** Minutes. */
  readonly stall?: number;
  readonly stallAction?: 'report' | 'stop';
  readonly onEvent?: string;
  readonly bell?: boolean;
  readonly pty?: boolean;
}

export interface CheckFlags extends PreflightFlags {
  readonly alternatives?: number;
  readonly format?: 'text' | 'json' | CheckFormat;
  readonly failOn?: 'rewrite' | 'refuse' | 'unknown';
}

export interface GpusFlags extends PreflightFlags {
  readonly ram?: boolean;
}

export interface EstimateFlags extends PreflightFlags {
  readonly plans?: string;
  readonly explain?: boolean;
}

export interface DialectsFlags {
  readonly json?: boolean;
}

export interface DiagnoseFlags extends Omit<PreflightFlags, 'mode'> {
  readonly config?: string;
  readonly run?: string;
  readonly nvidiaSmi?: string;
  readonly dmesg?: string;
  readonly lang?: 'en' | 'zh';
  readonly markdown?: boolean;
}

/** Comma separated, and given more than once they add up. */
const collectNames = (text: string, before: readonly string[] = []): string[] => [
  ...before,
  ...text
    .split(',')
    .map((part) => part.trim())
    .filter((part) => part !== ''),
];

function parseShare(text: string): number {
  const match = /^(\d+(?:\.\d+)?)(%?)$/.exec(text.trim());
  const share = match ? Number(match[1]) / (match[2] ? 100 : 1) : Number.NaN;
  if (!(share >= 0 && share < 1)) throw new InvalidArgumentError('give a share of the card such as 0.05 or 5%.');
  return share;
}

function parseCount(text: string): number {
  if (!/^\d{1,3}$/.test(text)) throw new InvalidArgumentError('give a whole number from 0 to 999.');
  return Number(text);
}

function parseDuration(text: string): number {
  if (!/^\d{1,6}(?:\.\d+)?$/.test(text)) throw new InvalidArgumentError('give a number, such as 30 or 0.5.');
  return Number(text);
}

function parseSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes === undefined || bytes < 1) throw new InvalidArgumentError('give a size such as 512MiB or 2GiB.');
  return bytes;
}

const collect = (text: string, before: readonly string[] = []): string[] => [...before, text];

const addGpuOption = (command: Command): Command =>
  command.option('--gpu <card>', 'plan for this card: a name (rtx-3090, a100-40gb:8) or a size (10GiB, 24GiB:2)');

/** `card` false: the command looks at every card. */
const addPreflightOptions = (command: Command, { card = true } = {}): Command =>
  (card ? addGpuOption(command) : command)
    .option('--model <id|folder>', 'take the architecture from here instead of what the launch names')
    .option('--online', 'allow to fetch config.json of an unknown model from the hub')
    .addOption(new Option('--mode <mode>', 'what to do when it does not fit').choices(['rewrite', 'refuse', 'warn']))
    .option('--allow <names>', `what may change: ${LEVER_CLASSES.join(', ')}, or single levers`, collectNames)
    .option('--forbid <names>', 'levers or classes that are never used, such as qlora', collectNames)
    .option('--keep <settings>', 'settings that stay as they are, such as optim', collectNames)
    .option('--headroom <share>', 'share of the card to keep free (default 0.05)', parseShare)
    .option('--set <setting=value>', 'a setting snug cannot see, such as max_length=2048 (repeatable)', collect)
    .option('--json', 'print one JSON object a config on stdout')
    .option('-q, --quiet', 'only errors on stderr');

const examples = (...lines: readonly string[]): string =>
  `\nExamples:\n${lines.map((line) => `  $ ${line}`).join('\n')}\n`;

/** The command line: what exists, what it is called, and an example for everything. */
export function buildProgram(): Command {
  const program = new Command('snug')
    .description(
      'Put in front of a fine-tuning command: makes the run fit the memory of the machine, and brings it home.',
    )
    .version(packageJson.version)
    .exitOverride()
    .showHelpAfterError('(snug --help, or snug COMMAND --help, shows examples)')
    .configureOutput({ outputError: (text, write) => write(text.replace(/^error: /, 'error[usage]: ')) })
    .configureHelp({ helpWidth: Math.min(process.stdout.columns ?? 80, 100) })
    .addHelpText(
      'after',
      `${examples(
        'snug run -- trl sft --config sft.yaml',
        'snug run snug.yaml',
        'snug check --gpu rtx-3090 -- trl sft --config sft.yaml',
        'snug estimate --plans plans.jsonl --json',
      )}\nsnug [options] -- COMMAND is snug run [options] -- COMMAND.\n`,
    );

  addPreflightOptions(program.command('run', { isDefault: true }))
    .description('check a run, make it fit, start it, watch it, and start it again smaller when it runs out of memory')
    .argument('[launch...]', 'a snug.yaml, or -- and the training command')
    .option('--retries <n>', 'how often to start again after running out of VRAM (default 3)', parseCount)
    .option('--continue [folder]', 'go on with a run that was broken off: its run folder, or the newest')
    .option('--grace <seconds>', 'from asking the trainer to end to killing it (default 30)', parseDuration)
    .option('--stall <minutes>', 'tell when there was no output for so long (default 30, 0: never)', parseDuration)
    .addOption(new Option('--stall-action <action>', 'what to do then (default report)').choices(['report', 'stop']))
    .option(
      '--on-event <command>',
      'start this, without a shell, with one JSON object on stdin, when something happens',
    )
    .option('--bell', 'ring the terminal when the run ends or stands still')
    .option('--pty', 'start it in a terminal of its own: bars and questions as without snug, one stream')
    .option('--log-limit <size>', 'past it output.log keeps only its head and its end (default 1GiB)', parseSize)
    .option('--ask', 'show the plan and wait for y or n before what does not fit as it came is started')
    .option('--dry-run', 'show the command and every changed file, start nothing')
    .addHelpText(
      'after',
      `${examples(
        'snug run -- accelerate launch train.py --per_device_train_batch_size 8',
        'snug run --retries 4 -- torchrun --nproc-per-node 2 train.py --bf16 true',
        'snug run snug.yaml --mode refuse',
        'snug run --continue',
        'snug run --dry-run --gpu 24GiB -- trl sft --config sft.yaml',
      )}\nExit code: the trainer's own (128+N for a signal); 11 refused,\n12 cannot be estimated and --mode refuse, 13 still out of VRAM after the last\nretry, 14 out of host RAM, 127 command not found, 2 usage, 3 the config cannot\nbe read.\n`,
    )
    .action(async (launch: string[], flags: RunFlags, command: Command) =>
      (await import('./run-action.ts')).runAction(launch, flags, command),
    );

  addPreflightOptions(program.command('check'))
    .description('say whether a run fits, and what would make it fit; start nothing')
    .argument('[launch...]', 'one or more snug.yaml files, or -- and the training command')
    .addOption(
      new Option('--fail-on <level>', 'from which outcome on the exit code is not 0').choices([
        'rewrite',
        'refuse',
        'unknown',
      ]),
    )
    .option('--alternatives <n>', 'also show so many other plans that would fit, each with its price', parseCount)
    .addOption(
      new Option('--format <format>', 'what to print; github adds the page to the job summary as well').choices([
        'text',
        'json',
        'github',
        'markdown',
        'junit',
      ]),
    )
    .addHelpText(
      'after',
      `${examples(
        'snug check snug.yaml',
        'snug check --gpu a100-40gb:8 -- torchrun --nproc-per-node 8 train.py',
        'snug check configs/*.yaml --gpu 24GiB --json --fail-on refuse',
        'snug check configs/*.yaml --gpu a100-40gb:8 --format github',
        'snug check snug.yaml --gpu 12GiB --alternatives 3',
      )}\nExit code: 0 fits as it is, 10 fits after the changes shown, 11 does not fit,\n12 cannot be estimated, 2 usage, 3 the config cannot be read.\n`,
    )
    .action(async (launch: string[], flags: CheckFlags, command: Command) =>
      (await import('./check-action.ts')).checkAction(launch, flags, command),
    );

  addPreflightOptions(program.command('estimate'))
    .description('print the predicted peaks of a launch, or of every plan in a JSONL file')
    .argument('[launch...]', 'a snug.yaml, or -- and the training command')
    .option('--plans <file.jsonl>', 'one native config (as JSON, with an id) a line; - for stdin')
    .option('--explain', 'each term with its formula, the numbers put in and where the formula comes from')
    .addHelpText(
      'after',
      examples(
        'snug estimate snug.yaml',
        'snug estimate --explain -- trl dpo --config dpo.yaml',
        'snug estimate --plans plans.jsonl --json',
        'snug estimate --json -- trl sft --config sft.yaml',
      ),
    )
    .action(async (launch: string[], flags: EstimateFlags, command: Command) =>
      (await import('./estimate-action.ts')).estimateAction(launch, flags, command),
    );

  program
    .command('dialects')
    .description('list the launch tools whose commands and configs are understood, and what is written back')
    .argument('[names...]', 'only these, setting by setting')
    .option('--json', 'print one JSON object on stdout')
    .addHelpText('after', examples('snug dialects', 'snug dialects axolotl trl', 'snug dialects --json'))
    .action(async (names: string[], flags: DialectsFlags) =>
      (await import('./dialects-action.ts')).dialectsAction(names, flags),
    );

  addPreflightOptions(program.command('gpus'), { card: false })
    .description('say on which cards a run fits: as it is, with which changes, on how many')
    .argument('[launch...]', 'a snug.yaml, or -- and the training command')
    .option('--ram', 'also say how much host RAM to rent with each card')
    .addHelpText(
      'after',
      `${examples(
        'snug gpus snug.yaml',
        'snug gpus --ram axolotl.yaml',
        'snug gpus --json -- trl sft --config sft.yaml',
      )}\nExit code: 0 at least one card will do, 11 none of them, 12 cannot be estimated,\n2 usage, 3 the config cannot be read.\n`,
    )
    .action(async (launch: string[], flags: GpusFlags, command: Command) =>
      (await import('./gpus-action.ts')).gpusAction(launch, flags, command),
    );

  program
    .command('diagnose')
    .description('say what ended a run: which memory, in which phase, by how much, and what to change')
    .argument(
      '[logs...]',
      'logs of a run (- for stdin; gzip and notebooks too), -- and its command; none: the newest run',
    )
    .option('--config <file>', 'the config of the run, to price what to change')
    .option('--run <folder>', 'a run folder of snug (.snug/runs/...) instead of a log')
    .option('--nvidia-smi <file>', 'what nvidia-smi printed')
    .option('--dmesg <file>', 'what dmesg or journalctl -k printed')
    .option('--gpu <card>', 'the card of the run, where the log does not tell')
    .option('--model <id|folder>', 'take the architecture from here instead of what the launch names')
    .option('--online', 'allow to fetch config.json of an unknown model from the hub')
    .option('--allow <names>', `what may change: ${LEVER_CLASSES.join(', ')}, or single levers`, collectNames)
    .option('--forbid <names>', 'levers or classes that are never used, such as qlora', collectNames)
    .option('--keep <settings>', 'settings that stay as they are, such as optim', collectNames)
    .option('--headroom <share>', 'share of the card to keep free (default 0.05)', parseShare)
    .option('--set <setting=value>', 'a setting snug cannot see, such as max_length=2048 (repeatable)', collect)
    .option('--json', 'print one JSON object a run on stdout')
    .option('--markdown', 'print a text for an issue: secrets, home folders, hosts and user names masked')
    .addOption(new Option('--lang <language>', 'language of the text (default: from LANG)').choices(['en', 'zh']))
    .option('-q, --quiet', 'only errors on stderr')
    .addHelpText(
      'after',
      `${examples(
        'snug diagnose train.log',
        'snug diagnose train.log --config sft.yaml',
        'snug diagnose logs/rank*.log -- torchrun --nproc-per-node 4 train.py',
        'kubectl logs trainer-0 | snug diagnose - --markdown',
      )}\nExit code: 0 a verdict was given, 15 nothing recognised, 2 usage,\n3 a file cannot be read.\n`,
    )
    .action(async (logs: string[], flags: DiagnoseFlags, command: Command) =>
      (await import('./diagnose-action.ts')).diagnoseAction(logs, flags, command),
    );

  return program;
}
