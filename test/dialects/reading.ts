import { error, fail, ok } from '../../src/core/index.ts';
import type { ReadContext } from '../../src/dialects/contract.ts';
import type { Dialect, Layer, Position } from '../../src/dialects/dialect.ts';
import { fakePorts } from '../support/fake-ports.ts';

export interface Machine {
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly gpus?: number | undefined;
  /** Which command of a script is meant. */
  readonly chosen?: { readonly path: string; readonly line: number };
  /** Absolute path, or path below /project → text. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A context over files in memory, working folder /project, home /home/u. */
export function contextOf({ environment = {}, gpus, files = {}, chosen }: Machine = {}): ReadContext {
  const absolute = (path: string): string => (path.startsWith('/') ? path : `/project/${path}`);
  const ports = fakePorts({
    environment,
    cwd: '/project',
    homeDir: '/home/u',
    files: Object.fromEntries(Object.entries(files).map(([path, text]) => [absolute(path), text])),
  });
  return {
    cwd: ports.cwd,
    homeDir: ports.homeDir,
    environment,
    files: ports.files,
    visibleGpus: gpus,
    ...(chosen ? { chosen } : {}),
    source: (path) => {
      const read = ports.files.readText(absolute(path));
      if (!read.ok) return fail(error('cannot-read', `${path} cannot be read: ${read.code}`, { location: path }));
      return ok({ path, absolutePath: absolute(path), text: read.value });
    },
  };
}

export const positionOf = (argv: readonly string[], machine: Machine = {}): Position => ({
  argv,
  index: 0,
  environment: machine.environment ?? {},
  visibleGpus: machine.gpus,
  above: [],
});

/** Asks the dialects in turn until none answers or one hands on no command; the layers, and where that ended. */
export function peel(argv: readonly string[], dialects: readonly Dialect[], machine: Machine = {}) {
  const context = contextOf(machine);
  const layers: Layer[] = [];
  let position = { ...positionOf(argv, machine), above: layers as readonly Layer[] };
  for (;;) {
    const dialect = dialects.find((each) => each.detect(position, context));
    const claim = dialect?.detect(position, context);
    if (!dialect || !claim) return { layers, position };
    const reading = dialect.read(claim, position, context);
    if (!reading.ok) throw new Error(JSON.stringify(reading.error));
    layers.push({ dialect, claim, reading: reading.value });
    const { handOn, env } = reading.value;
    position = { ...position, environment: { ...position.environment, ...env }, above: [...layers] };
    if (handOn?.kind !== 'command')
      return { layers, position: { ...position, index: handOn ? claim.to : argv.length } };
    position = { ...position, index: handOn.index };
  }
}
