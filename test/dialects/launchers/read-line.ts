import { accelerate } from '../../../src/dialects/accelerate/index.ts';
import { deepspeed } from '../../../src/dialects/deepspeed/index.ts';
import type { Dialect, Layer } from '../../../src/dialects/dialect.ts';
import { python } from '../../../src/dialects/python/index.ts';
import { torchrun } from '../../../src/dialects/torchrun/index.ts';
import { program, WRAPPERS } from '../../../src/dialects/wrappers/index.ts';
import { formatOrigin } from '../../../src/spec/index.ts';
import { type Machine, peel } from '../reading.ts';

/** In the order of the registry. */
export const LAUNCHERS: readonly Dialect[] = [
  ...WRAPPERS,
  torchrun as Dialect,
  deepspeed as Dialect,
  accelerate as Dialect,
  python,
  program,
];

/** The launcher of a command line; throws what reading it answers. */
export function layerOf(line: string, machine: Machine = {}): Layer {
  const layer = peel(line.split(' '), LAUNCHERS, machine).layers.at(-1);
  if (!layer || (layer.dialect.kind === 'wrapper' && layer.dialect !== program))
    throw new Error(`nobody reads ${line}`);
  return layer;
}

/** `dialect | nodes × processes, ranks or not, who says so | what is started, from which argument on`. */
export function readLine(line: string, machine: Machine = {}): string {
  const { dialect, reading } = layerOf(line, machine);
  const { nodes, perNode, distributed, origin } = reading.processes!;
  const target = reading.handOn?.kind === 'target' ? reading.handOn.target : undefined;
  return [
    dialect.id,
    `${nodes ?? '?'} × ${perNode ?? '?'} ${distributed ? 'ranks' : 'plain'}, ${formatOrigin(origin)}`,
    target ? `${target.form} ${target.name}, ${target.argsFrom}` : 'nothing',
  ].join(' | ');
}

/** `code location` of every diagnostic. */
export const notesOf = (line: string, machine: Machine = {}): string[] =>
  (layerOf(line, machine).reading.diagnostics ?? []).map(({ code, location }) => `${code} ${location}`);

/** The diagnostics of a command line that cannot be read. */
export function refusalOf(line: string, machine: Machine = {}): string[] {
  try {
    layerOf(line, machine);
  } catch (cause) {
    const diagnostics = JSON.parse((cause as Error).message) as { code: string; location: string }[];
    return diagnostics.map(({ code, location }) => `${code} ${location}`);
  }
  throw new Error(`was read: ${line}`);
}
