import { error, fail, note, ok, type Result } from '../core/index.ts';
import type { Origin } from '../spec/index.ts';
import type { LaunchReading, LaunchSource, ReadContext } from './contract.ts';
import type { BareFile, Dialect, FileClaim, FileValue } from './dialect.ts';
import { parseJson } from './json-text.ts';
import { isNativeFile, NATIVE_SIGN } from './native/claim-file.ts';
import { type NativePolicy, readNativeConfig } from './native/read.ts';
import { readLaunch, readLaunchPartly } from './read-launch.ts';
import { REGISTRY } from './registry.ts';
import { interpreterOf, isJobScript, isShellScript } from './shell/index.ts';
import { quoteCommand } from './split-command.ts';
import { readYaml } from './yaml-read.ts';

/** A launch that was given as one file. */
export interface BareReading {
  readonly reading: LaunchReading;
  /** Of a native config; empty for all others. */
  readonly policy: NativePolicy;
}

/**
 * Reads a file that was given without a command: a native config by its own keys, else the config of a trainer together
 * with the command that belongs to it. Errors: nobody knows the file, or it takes more than the file to start its trainer.
 */
export function readBareFile(path: string, context: ReadContext): Result<BareReading> {
  const script = bareScript(path, context);
  if (script) return readBareScript(script, context);
  const file = openBareFile(path, context);
  if (!file.ok) return file;
  const sure = isNativeFile(file.value);
  const claim = sure === 'yes' ? undefined : claimOf(file.value);
  if (!claim) return sure === 'no' ? fail(nobodyKnows(file.value)) : readNativeConfig(path, context);
  if (claim.kind === 'unclear') {
    return fail(
      error('incomplete-launch', `${path} is ${claim.what}, which does not say what starts it`, {
        location: path,
        help: claim.commands.map((command) => `snug run -- ${command}`).join(', or '),
      }),
    );
  }
  const reading = readLaunch(claim.argv, context);
  if (!reading.ok) return reading;
  const command = quoteCommand(claim.argv);
  const trainer = reading.value.stack.find((entry) => entry.kind === 'trainer')?.dialect ?? 'trainer';
  const told = note('bare-config', `${path} is a config of ${trainer}, started by: ${command}`, { location: path });
  return ok({ reading: { ...reading.value, diagnostics: [told, ...reading.value.diagnostics] }, policy: {} });
}

/** What the file and its command say where another file that they name is missing; undefined: nothing, or a native config. */
export function readBareFilePartly(path: string, context: ReadContext): LaunchReading | undefined {
  const script = bareScript(path, context);
  if (script)
    return readLaunchPartly(script.argv, script.chosen ? { ...context, chosen: script.chosen } : context).reading;
  const file = openBareFile(path, context);
  if (!file.ok || isNativeFile(file.value) === 'yes') return undefined;
  const claim = claimOf(file.value);
  if (claim?.kind === 'command') return readLaunchPartly(claim.argv, context).reading;
  const reading = claim?.presumed && readLaunchPartly(claim.presumed, context).reading;
  if (!reading) return undefined;
  // Who starts it is presumed; only what the file itself is belongs to the answer.
  const { kind } = REGISTRY.find((dialect) => dialect.id === claim.dialect)!;
  const stack = reading.stack.filter((entry) => entry.kind === kind);
  const own = ([name, setting]: [string, { readonly origin: Origin } | undefined]): boolean =>
    kind !== 'engine' || name === 'distributed' || (setting?.origin.kind === 'file' && setting.origin.path === path);
  const layer = reading.internals?.view.layers.find(({ dialect }) => dialect.id === claim.dialect);
  const spec = { ...layer?.reading.spec, ...Object.fromEntries(Object.entries(reading.spec).filter(own)) };
  return { ...reading, command: { argv: [] }, stack, spec };
}

interface BareScript {
  readonly path: string;
  readonly argv: readonly string[];
  readonly chosen: ReadContext['chosen'];
}

/**
 * A shell script, also as `train.sh:12` (the command at that line). A job script belongs to Slurm: inside an allocation it is
 * started here, elsewhere it is submitted.
 */
function bareScript(given: string, context: ReadContext): BareScript | undefined {
  const whole = context.source(given);
  const [, file, line] = /^(.+):(\d+)$/.exec(given) ?? [];
  const path = whole.ok || file === undefined ? given : file;
  const source = whole.ok ? whole : context.source(path);
  if (!source.ok || !isShellScript(path, source.value.text)) return undefined;
  const elsewhere = isJobScript(path, source.value.text) && context.environment.SLURM_JOB_ID === undefined;
  const starter = elsewhere ? 'sbatch' : interpreterOf(source.value.text);
  const chosen = path !== given ? { path, line: Number(line) } : undefined;
  return { path, argv: [starter, path], chosen };
}

function readBareScript({ path, argv, chosen }: BareScript, context: ReadContext): Result<BareReading> {
  const reading = readLaunch(argv, chosen ? { ...context, chosen } : context);
  if (!reading.ok) return reading;
  const told = note('bare-config', `${path} is a shell script, started by: ${quoteCommand(argv)}`, { location: path });
  return ok({ reading: { ...reading.value, diagnostics: [told, ...reading.value.diagnostics] }, policy: {} });
}

function openBareFile(path: string, context: ReadContext): Result<BareFile> {
  const source = context.source(path);
  if (!source.ok) return source;
  const values = topLevel(source.value);
  return values.ok ? ok({ path, values: values.value }) : values;
}

/** Engines are asked first: their files hold words of TrainingArguments too. */
function claimOf(file: BareFile): (FileClaim & { readonly dialect: string }) | undefined {
  const engines = REGISTRY.filter(({ kind }) => kind === 'engine');
  for (const dialect of [...engines, ...REGISTRY]) {
    const claim = dialect.claimFile?.(file);
    if (claim) return { ...claim, dialect: dialect.id };
  }
  return undefined;
}

function topLevel({ path, text }: LaunchSource): Result<ReadonlyMap<string, FileValue>> {
  if (path.endsWith('.json')) {
    const node = parseJson(text, path);
    return node.ok ? ok(new Map((node.value.members ?? []).map((each) => [each.key, each.node.value]))) : node;
  }
  const yaml = readYaml(text, path);
  if (!yaml.ok) return yaml;
  const top = yaml.value.entries.filter((entry) => entry.keyPath.length === 1);
  return ok(new Map(top.map((entry) => [entry.keyPath[0]!, entry.value])));
}

function nobodyKnows({ path, values }: BareFile) {
  const signs = REGISTRY.flatMap((dialect: Dialect) =>
    dialect.fileSign ? [`${dialect.title}: ${dialect.fileSign}`] : [],
  );
  const found = [...values.keys()].slice(0, 5).join(', ');
  return error('unknown-config', `${path} is not a launch config of a kind that is known here`, {
    location: path,
    notes: [`its keys begin with ${found}`, `looked for: ${[`snug: ${NATIVE_SIGN}`, ...signs].join('; ')}`],
    help: `give the command that uses it: snug run -- COMMAND ${path}`,
  });
}
