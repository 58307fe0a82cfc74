import { type Diagnostic, fail, note, ok, type Result, warning } from '../core/index.ts';
import type { TrainingSpec } from '../spec/index.ts';
import type { LaunchInternals, LaunchReading, ReadContext, StackEntry, Unread } from './contract.ts';
import type { Claim, Dialect, HandOn, Layer, Position, Reading, StackView } from './dialect.ts';
import { allocatorSetting, visibleIn } from './environment.ts';
import { foldDistributed } from './fold-distributed.ts';
import { readPartly } from './read-partly.ts';
import { REGISTRY } from './registry.ts';
import { type InnerReading, type ReadInner, readScript } from './shell/index.ts';
import { unknownProcesses } from './wrappers/program.ts';
import { editSetting, writableIn } from './write-setting.ts';

/**
 * Reads a whole launch: wrappers, launcher, trainer, the files and engines they name, folded into one spec. A program that
 * no dialect knows is no error; a file that is missing or broken is.
 */
export function readLaunch(argv: readonly string[], context: ReadContext): Result<LaunchReading> {
  const { reading, errors } = readLaunchPartly(argv, context);
  if (reading && errors.length === 0) return ok(reading);
  return fail(...errors);
}

/**
 * As `readLaunch`, and beside the errors what the rest of the launch says: settings that only the unreadable file could
 * have told are null. undefined: nothing can be made of it.
 */
export function readLaunchPartly(
  argv: readonly string[],
  context: ReadContext,
): { readonly reading: LaunchReading | undefined; readonly errors: readonly Diagnostic[] } {
  return readWithin(argv, context, 0);
}

/** A script that starts a script that starts a script … */
const MAX_DEPTH = 4;

function readWithin(argv: readonly string[], context: ReadContext, depth: number): InnerReading {
  const { layers, end, errors } = walk(argv, context);
  const handOn = layers.at(-1)?.reading.handOn;
  if (handOn?.kind === 'script' && depth < MAX_DEPTH) {
    const inside = { ...context, environment: end.environment, visibleGpus: end.visibleGpus };
    const next: ReadInner = (inner, at) => readWithin(inner, at, depth + 1);
    const { found, diagnostics } = readScript(handOn.script, argv, inside, next);
    const outside = foldReading(argv, { layers: layers.map(withoutScript), end });
    return found ? joined(outside, found, diagnostics) : { reading: told(outside, diagnostics), errors };
  }
  const broken = errors.length > 0 && layers.length === 0;
  return { reading: broken ? undefined : foldReading(argv, { layers, end }), errors };
}

const withoutScript = (layer: Layer): Layer => {
  if (layer.reading.handOn?.kind !== 'script') return layer;
  const { handOn: _, ...reading } = layer.reading;
  return { ...layer, reading: { ...reading, processes: unknownProcesses(layer.claim.from) } };
};

const told = (reading: LaunchReading, diagnostics: readonly Diagnostic[]): LaunchReading => ({
  ...reading,
  diagnostics: [...diagnostics, ...reading.diagnostics],
});

/** The launch inside a script, under what stands around the script. */
function joined(
  outside: LaunchReading,
  { reading, errors }: InnerReading,
  diagnostics: readonly Diagnostic[],
): InnerReading {
  if (!reading) return { reading: undefined, errors };
  const around = outside.diagnostics.filter(({ code }) => code !== 'unknown-processes');
  return {
    errors,
    reading: {
      ...reading,
      env: { ...outside.env, ...reading.env },
      wrappers: [...outside.wrappers, ...reading.wrappers],
      programIndex: outside.programIndex,
      diagnostics: [...diagnostics, ...around, ...reading.diagnostics],
    },
  };
}

interface Walked {
  readonly layers: readonly Layer[];
  readonly end: Position;
}

/** Asks the dialects in turn until nobody claims what is left, then the engines that the layers brought in. */
function walk(argv: readonly string[], context: ReadContext): Walked & { readonly errors: readonly Diagnostic[] } {
  const layers: Layer[] = [];
  const errors: Diagnostic[] = [];
  let position: Position = {
    argv,
    index: 0,
    environment: context.environment,
    visibleGpus: context.visibleGpus,
    above: layers,
  };
  // Each turn claims at least one token or ends, so a command of n tokens takes at most n turns.
  for (let turn = 0; turn <= argv.length; turn += 1) {
    const dialects = REGISTRY.filter((dialect) => asked(dialect, position));
    const found = ask(dialects, position, context);
    if (!found) break;
    const { reading: read, errors: own } = readPartly(found.dialect, found.claim, position, context);
    errors.push(...own);
    if (!read) break;
    const reading = searched(read, found.claim, position, context);
    layers.push({ ...found, reading });
    const next = advance(position, found.claim.to, reading.handOn, reading.env, context);
    const ended = next.index >= argv.length || next.index <= position.index;
    position = next;
    if (found.dialect.kind === 'trainer' || (ended && !next.target)) break;
  }
  for (const use of layers.flatMap((layer) => layer.reading.engines ?? [])) {
    const dialect = REGISTRY.find((each) => each.id === use.dialect);
    if (!dialect || !use.file) continue;
    const claim = { from: position.index, to: position.index };
    const reading = dialect.read(claim, { ...position, engine: use }, context);
    if (reading.ok) layers.push({ dialect, claim, reading: reading.value });
    else errors.push(...reading.error);
  }
  return { layers, end: position, errors: distinct(errors) };
}

/** A wrapper whose options are not all known: the command behind it is looked for by the names of programs. */
function searched(reading: Reading, claim: Claim, position: Position, context: ReadContext): Reading {
  const { handOn, ...rest } = reading;
  if (handOn?.kind !== 'search') return reading;
  const index = findCommand(handOn.from, position, context);
  if (index !== undefined) return { ...rest, handOn: { kind: 'command', index } };
  const diagnostics = [...(rest.diagnostics ?? []), ...handOn.otherwise];
  return { ...rest, processes: unknownProcesses(claim.from), diagnostics };
}

/** Programs that any word could be, and such as hide their command themselves. */
const NAMELESS: ReadonlySet<string> = new Set(['program', 'assignments', 'unread-command']);

function findCommand(from: number, position: Position, context: ReadContext): number | undefined {
  const { argv } = position;
  const { target: _, ...plain } = position;
  const dashes = argv.indexOf('--', from);
  const places = [...(dashes < 0 ? [] : [dashes + 1]), ...argv.keys()].filter((index) => index >= from);
  const dialects = REGISTRY.filter(({ id, kind }) => kind !== 'engine' && !NAMELESS.has(id));
  return places.find((index) => dialects.some((dialect) => dialect.detect({ ...plain, index }, context)));
}

const distinct = (diagnostics: readonly Diagnostic[]): readonly Diagnostic[] => [
  ...new Map(diagnostics.map((each) => [`${each.message} ${each.location}`, each])).values(),
];

const asked = (dialect: Dialect, position: Position): boolean =>
  position.target ? dialect.kind === 'trainer' : dialect.kind !== 'engine';

function ask(
  dialects: readonly Dialect[],
  position: Position,
  context: ReadContext,
): Pick<Layer, 'dialect' | 'claim'> | undefined {
  for (const dialect of dialects) {
    const claim = dialect.detect(position, context);
    if (claim) return { dialect, claim };
  }
  return undefined;
}

function advance(
  position: Position,
  claimedTo: number,
  handOn: HandOn | undefined,
  env: Readonly<Record<string, string | undefined>> | undefined,
  context: ReadContext,
): Position {
  const environment = { ...position.environment, ...env };
  const { target: _, ...rest } = position;
  return {
    ...rest,
    environment,
    visibleGpus: visibleIn(environment, context),
    index: handOn?.kind === 'command' ? handOn.index : claimedTo,
    ...(handOn?.kind === 'target' ? { target: handOn.target } : {}),
  };
}

function foldReading(argv: readonly string[], { layers, end }: Walked): LaunchReading {
  const trainer = layers.find((layer) => layer.dialect.kind === 'trainer');
  const inner = layers.filter((layer) => layer.dialect.kind !== 'trainer');
  const distributed = foldDistributed(layers);
  const allocator = allocatorSetting(end.environment);
  // The trainer's own values come last: it has already weighed what the launcher hands down.
  const spec: TrainingSpec = Object.assign(
    {},
    ...inner.map((layer) => layer.reading.spec),
    trainer?.reading.spec ?? {},
    engineCheckpointing(inner, trainer),
    engineOptimizer(inner),
    { distributed: distributed.setting },
    allocator ? { allocatorConf: allocator } : {},
  );
  const stack = stackOf(layers);
  // Behind a wrapper that did not look through, that wrapper is what is started.
  const program = notLookedThrough(layers) ? layers.at(-1) : layers.find((layer) => layer.dialect.kind !== 'wrapper');
  const view: StackView = { argv, layers, spec };
  const { environment } = end;
  const internals: LaunchInternals = {
    view,
    environment,
    edit: (setting, to, wanted) => editSetting(wanted ? { ...view, wanted } : view, environment, setting, to),
    always: () => [],
  };
  const diagnostics = [
    ...layers.flatMap((layer) => layer.reading.diagnostics ?? []),
    ...distributed.diagnostics,
    ...(trainer || notLookedThrough(layers) ? [] : unknownTrainer(argv, end)),
  ];
  return {
    command: { argv },
    env: Object.fromEntries(
      layers.flatMap((layer) =>
        Object.entries(layer.reading.env ?? {}).filter((pair): pair is [string, string] => pair[1] !== undefined),
      ),
    ),
    wrappers: layers
      .filter((layer) => layer.dialect.kind === 'wrapper')
      .map((layer) => layer.reading.label ?? layer.dialect.id)
      .filter((label) => label !== ''),
    stack,
    files: [...new Set(layers.flatMap((layer) => layer.reading.files ?? []).map((file) => file.source.path))],
    spec,
    parallelism: distributed.parallelism,
    ...(trainer?.reading.parts ? { parts: trainer.reading.parts } : {}),
    unread: layers.flatMap((layer): readonly Unread[] => layer.reading.unread ?? []),
    diagnostics,
    programIndex: program?.claim.from ?? Math.min(end.index, Math.max(argv.length - 1, 0)),
    python: layers.findLast((layer) => layer.reading.python !== undefined)?.reading.python,
    ...(trainer?.reading.notEstimated ? { notEstimated: trainer.reading.notEstimated } : {}),
    resume: trainer?.reading.resume ?? { kind: 'unsupported', reason: 'the trainer is not known, nor how it resumes' },
    writable: writableIn(internals),
    internals,
  };
}

/** FSDP's own activation checkpointing holds where the trainer's is off. */
function engineCheckpointing(
  inner: readonly Layer[],
  trainer: Layer | undefined,
): Pick<TrainingSpec, 'gradientCheckpointing'> {
  const engine = inner.findLast((layer) => layer.reading.spec.gradientCheckpointing?.value?.enabled);
  const own = trainer?.reading.spec.gradientCheckpointing?.value?.enabled;
  return engine && !own ? { gradientCheckpointing: engine.reading.spec.gradientCheckpointing! } : {};
}

/** An engine that brings an optimizer makes that one, whatever the trainer is told. */
function engineOptimizer(inner: readonly Layer[]): Pick<TrainingSpec, 'optim'> {
  const optim = inner.findLast((layer) => layer.dialect.kind === 'engine' && layer.reading.spec.optim)?.reading.spec
    .optim;
  return optim ? { optim } : {};
}

/** Launchers, the trainer, then engines; an engine that no dialect reads still joins. */
function stackOf(layers: readonly Layer[]): readonly StackEntry[] {
  const entries = layers.flatMap((layer): StackEntry[] => {
    const { kind, id } = layer.dialect;
    if (kind === 'wrapper') return [];
    return [{ dialect: id, kind, ...(layer.reading.via ? { via: layer.reading.via } : {}) }];
  });
  const order = { launcher: 0, trainer: 1, engine: 2 } as const;
  const known = new Set(entries.map((entry) => entry.dialect));
  const used = layers.flatMap((layer) => layer.reading.engines ?? []).filter((use) => !known.has(use.dialect));
  const engines = [...new Set(used.map((use) => use.dialect))].map(
    (dialect): StackEntry => ({ dialect, kind: 'engine' }),
  );
  return [...entries, ...engines].sort((a, b) => order[a.kind] - order[b.kind]);
}

/** A wrapper that says itself why nothing behind it was read. */
const notLookedThrough = (layers: readonly Layer[]): boolean =>
  layers.at(-1)?.dialect.kind === 'wrapper' && layers.at(-1)?.reading.handOn === undefined;

function unknownTrainer(argv: readonly string[], end: Position): readonly Diagnostic[] {
  const index = end.target?.index ?? Math.min(end.index, argv.length - 1);
  if (index < 0) return [warning('empty-command', 'there is no command to start')];
  return [
    note('unknown-trainer', `${argv[index]} is no trainer whose settings are known here`, {
      location: `argv[${index}]`,
      help: 'describe the run in a snug.yaml with command: and its settings',
    }),
  ];
}
