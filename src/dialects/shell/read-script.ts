import { type Diagnostic, error, note, ok, type Result, warning } from '../../core/index.ts';
import type { Origin, TrainingSpec } from '../../spec/index.ts';
import type { LaunchReading, LaunchSource, ReadContext } from '../contract.ts';
import { visibleIn } from '../environment.ts';
import { quoteCommand } from '../split-command.ts';
import { type ShellCommand, walkShell } from './commands.ts';
import { fitScript, lineOf, placeOf } from './fit-script.ts';
import { SCRIPT_FOLDER } from './folder.ts';
import { slurmVariables } from './sbatch.ts';
import type { ShellScript } from './script.ts';

export interface InnerReading {
  readonly reading: LaunchReading | undefined;
  readonly errors: readonly Diagnostic[];
}

/** Reads a whole command line; handed in, since a script may start another. */
export type ReadInner = (argv: readonly string[], context: ReadContext) => InnerReading;

/** More simple commands than this are no launch script. */
const MAX_COMMANDS = 120;

interface Candidate {
  readonly command: ShellCommand;
  readonly argv: readonly string[];
  readonly inner: InnerReading;
  readonly rank: number;
}

/**
 * The training command of a script, read as if it had been typed: with the variables and the folder that hold where it
 * stands. Origins and places are those of the script. undefined: no training command is in it, or several that differ (the
 * diagnostics say so).
 */
export function readScript(
  script: ShellScript,
  outer: readonly string[],
  context: ReadContext,
  readInner: ReadInner,
): { readonly found: InnerReading | undefined; readonly diagnostics: readonly Diagnostic[] } {
  const environment = { ...slurmVariables(script.allocation), ...context.environment };
  const commands = walkShell(script.text, environment, script.positional, (path) => {
    const source = context.source(path);
    return source.ok ? source.value.text : undefined;
  });
  const known = new Map<string, InnerReading>();
  const candidates = commands.slice(0, MAX_COMMANDS).flatMap((command): Candidate[] => {
    const argv = command.words.flatMap(({ fields }) => fields.map(({ text }) => text));
    if (argv.length === 0) return [];
    const at = contextAt(command, script, environment, context);
    const key = JSON.stringify([argv, at.cwd, at.environment]);
    const inner = known.get(key) ?? readInner(argv, at);
    known.set(key, inner);
    return [{ command, argv, inner, rank: rankOf(inner) }];
  });
  const best = Math.max(0, ...candidates.map(({ rank }) => rank));
  const training = best === 0 ? [] : candidates.filter(({ rank }) => rank === best);
  const chosen = script.line === undefined ? training : training.filter((each) => standsAt(each.command, script));
  if (script.line !== undefined && chosen.length === 0) return { found: undefined, diagnostics: [noneAt(script)] };
  const [first] = chosen;
  if (!first) return { found: undefined, diagnostics: [noCommand(script)] };
  const distinct = new Set(chosen.map(({ argv }) => JSON.stringify(argv)));
  if (distinct.size > 1) return { found: undefined, diagnostics: [several(script, chosen)] };
  const unsafe = whyUnsafe(script, training);
  return {
    found: placed(first, { script, outer, unsafe, environment }),
    diagnostics: aboutBlocks(first.command, script),
  };
}

/** A trainer says most, then a launcher, then any Python; the rest is housekeeping. */
function rankOf({ reading }: InnerReading): number {
  const stack = reading?.stack ?? [];
  if (stack.some(({ kind }) => kind === 'trainer')) return 3;
  if (stack.some(({ dialect, kind }) => kind === 'launcher' && dialect !== 'python')) return 2;
  return stack.length > 0 ? 1 : 0;
}

function contextAt(
  command: ShellCommand,
  script: ShellScript,
  environment: Readonly<Record<string, string | undefined>>,
  context: ReadContext,
): ReadContext {
  const seen: Record<string, string | undefined> = { ...environment };
  for (const name of exportedBy(command, environment)) {
    const value = command.variables.get(name);
    seen[name] = typeof value === 'string' ? value : undefined;
  }
  const base = { ...context, environment, visibleGpus: gpusOf(script, context) };
  const moved = folderOf(command, script, context);
  return {
    ...base,
    environment: seen,
    visibleGpus: visibleIn(seen, base),
    ...(moved === undefined ? {} : { cwd: moved, source: sourceFrom(moved, context) }),
  };
}

/** Variables that the script has set and that its programs see. */
const exportedBy = (
  command: ShellCommand,
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] =>
  [...command.variables.keys()].filter(
    (name) => command.exported.has(name) || command.exported.has('*') || environment[name] !== undefined,
  );

/** GPUs of the job where Slurm is asked for them, and this is not already it. */
function gpusOf({ allocation }: ShellScript, { environment, visibleGpus }: ReadContext): number | undefined {
  const inside = environment.SLURM_JOB_ID !== undefined && visibleGpus !== undefined;
  return inside ? visibleGpus : (allocation?.gpusPerNode ?? visibleGpus);
}

function folderOf({ folder }: ShellCommand, script: ShellScript, { cwd }: ReadContext): string | undefined {
  if (folder === undefined || folder === null) return undefined;
  const own = script.path === undefined ? '.' : script.path.split('/').slice(0, -1).join('/') || '.';
  const path = folder.startsWith(SCRIPT_FOLDER) ? `${own}${folder.slice(SCRIPT_FOLDER.length)}` : folder;
  const absolute = path.startsWith('/') ? path : `${cwd}/${path}`;
  return absolute.replace(/(?:\/\.)+(?=\/|$)/g, '') || '/';
}

/** Files are named from the folder the script has gone to. */
function sourceFrom(folder: string, context: ReadContext): ReadContext['source'] {
  return (path): Result<LaunchSource> => {
    if (path.startsWith('/') || path.startsWith('~')) return context.source(path);
    const source = context.source(`${folder}/${path}`);
    return source.ok ? ok({ ...source.value, path }) : source;
  };
}

const standsAt = (command: ShellCommand, { text, line }: ShellScript): boolean => {
  const [first, last] = [command.words[0]!, command.words.at(-1)!];
  return lineOf(text, first.start) <= line! && line! <= lineOf(text, last.end);
};

interface Placement {
  readonly script: ShellScript;
  readonly outer: readonly string[];
  readonly unsafe: string | undefined;
  readonly environment: Readonly<Record<string, string | undefined>>;
}

/** The inner reading with the places of the script, and with its changes written into a copy of the script. */
function placed({ command, inner, argv }: Candidate, at: Placement): InnerReading {
  const { script, outer, unsafe, environment } = at;
  const words = command.words.flatMap((word) => word.fields.map(() => word));
  const place = (index: number): string => placeOf(script, (words[index] ?? command.words.at(-1)!).start);
  const move = (origin: Origin): Origin => {
    if (origin.kind !== 'argv') return origin;
    if (script.path === undefined) return { kind: 'argv', index: script.token };
    const { start } = words[origin.index] ?? command.words.at(-1)!;
    return { kind: 'file', path: script.path, line: lineOf(script.text, start) };
  };
  const tell = (diagnostic: Diagnostic): Diagnostic => {
    const index = /^argv\[(\d+)\]$/.exec(diagnostic.location ?? '')?.[1];
    return index === undefined ? diagnostic : { ...diagnostic, location: place(Number(index)) };
  };
  const errors = inner.errors.map(tell);
  const { reading } = inner;
  if (!reading) return { reading: undefined, errors };
  const assigned = new Set(exportedBy(command, environment));
  const fit = { script, command, outer, assigned, unsafe };
  const { outer: within } = reading.internals ?? {};
  const exported = Object.fromEntries(
    [...assigned].flatMap((name) => {
      const value = command.variables.get(name);
      return typeof value === 'string' ? [[name, value]] : [];
    }),
  );
  return {
    errors,
    reading: {
      ...reading,
      command: { argv: outer },
      env: { ...exported, ...reading.env },
      files: [...(script.path === undefined ? [] : [script.path]), ...reading.files],
      spec: Object.fromEntries(
        Object.entries(reading.spec).map(([name, setting]) => [
          name,
          setting && { ...setting, origin: move(setting.origin) },
        ]),
      ) as TrainingSpec,
      unread: reading.unread.map((each) => ({ ...each, origin: move(each.origin) })),
      diagnostics: reading.diagnostics.map(tell),
      python:
        reading.python !== undefined && /\//.test(reading.python) ? reading.python : (command.python ?? reading.python),
      ...(script.allocation ? { allocation: script.allocation } : {}),
      ...(script.submitted ? { startsElsewhere: submitted(script, command, argv) } : {}),
      ...(reading.internals
        ? {
            internals: {
              ...reading.internals,
              programIndex: reading.internals.programIndex ?? reading.programIndex,
              outer: (fitted, copyFolder) => fitScript(fit, within?.(fitted, copyFolder) ?? fitted, copyFolder),
            },
          }
        : {}),
    },
  };
}

/** A copy lies elsewhere and starts everything that the script starts. */
function whyUnsafe(script: ShellScript, training: readonly Candidate[]): string | undefined {
  if (script.submitted) return 'Slurm starts it, not snug';
  const distinct = new Set(training.map(({ argv }) => JSON.stringify(argv)));
  if (distinct.size > 1) return 'the script starts other trainings too';
  if (script.text.includes('\ufffd')) return 'the script is not UTF-8 text';
  if (script.path !== undefined && /\$\{?0\b|\$\{?BASH_SOURCE/.test(script.text)) {
    return 'the script asks where it lies ($0), and a copy lies elsewhere';
  }
  return undefined;
}

const nameOf = ({ path, token }: ShellScript): string => path ?? `the text of argv[${token}]`;

const submitted = (script: ShellScript, command: ShellCommand, argv: readonly string[]): Diagnostic =>
  error('needs-allocation', `${nameOf(script)} is started by Slurm, later and on another machine`, {
    location: placeOf(script, command.words[0]!.start),
    help: `put snug run in front of the command in it: snug run -- ${quoteCommand(argv)}`,
  });

const noCommand = (script: ShellScript): Diagnostic =>
  note('unread-command', `no training command was found in ${nameOf(script)}`, {
    location: script.path ?? `argv[${script.token}]`,
    help: 'put snug before the training command in the script',
  });

const noneAt = (script: ShellScript): Diagnostic =>
  warning('no-command-there', `no training command stands at line ${script.line} of ${nameOf(script)}`, {
    location: `${script.path}:${script.line}`,
    help: `snug check ${script.path} names the lines`,
  });

function several(script: ShellScript, chosen: readonly Candidate[]): Diagnostic {
  const places = chosen.map(({ command, argv }) => ({
    place: placeOf(script, command.words[0]!.start),
    text: quoteCommand(argv).slice(0, 60),
  }));
  return warning('several-commands', `${nameOf(script)} starts ${chosen.length} trainings, and none was chosen`, {
    location: places[0]!.place,
    notes: places.slice(0, 8).map(({ place, text }) => `${place}  ${text}`),
    help:
      script.path === undefined ? 'give one of them alone' : `choose one by its line: snug check ${places[0]!.place}`,
  });
}

function aboutBlocks(command: ShellCommand, script: ShellScript): Diagnostic[] {
  const location = placeOf(script, command.words[0]!.start);
  const lost = command.folder === null;
  const where = { loop: 'a loop', branch: 'a branch that may not be taken', function: 'a function' } as const;
  return [
    ...(command.block
      ? [note('in-a-block', `the training command stands in ${where[command.block]}`, { location })]
      : []),
    ...(lost
      ? [
          warning('other-folder', 'the script changes to a folder that cannot be known here', {
            location,
            help: 'start snug in that folder',
          }),
        ]
      : []),
  ];
}
