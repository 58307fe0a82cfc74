import type { LaunchReading } from './contract.ts';
import { isPython } from './python/keys.ts';
import { programName } from './scan-options.ts';

/** What asking for the Python of a launch needs of the world. */
export interface ShebangPort {
  /** Beginning of the file that `program` (a path, or a name found on PATH) is; undefined: there is none, or it is no text. */
  readonly shebangOf: (program: string) => string | undefined;
}

/** Wrappers that choose which Python runs; the others (`nohup`, `timeout`, `sudo`) change nothing about it. */
const ENVIRONMENTS: ReadonlySet<string> = new Set([
  ...['uv', 'uv-tool', 'uvx', 'conda', 'mamba', 'micromamba'],
  ...['poetry', 'pdm', 'pipenv', 'rye', 'hatch', 'pixi'],
]);

/**
 * The words that start the trainer's own Python, to put `-c code` behind: the interpreter the command names, the one of the
 * environment that a wrapper chooses (`uv run python`), or the one in the first line of the console script (`trl`,
 * `torchrun`). Undefined: it cannot be told.
 */
export function pythonOf(reading: LaunchReading, port: ShebangPort): readonly string[] | undefined {
  const argv = reading.internals?.view.argv ?? reading.command.argv;
  const layers = reading.internals?.view.layers ?? [];
  const chosen = layers
    .filter(({ dialect }) => ENVIRONMENTS.has(dialect.id))
    .flatMap(({ claim }) => argv.slice(claim.from, claim.to));
  const named = layers.findLast(
    ({ dialect, reading: { python } }) => dialect.kind !== 'wrapper' && python !== undefined,
  );
  if (named) return [...chosen, named.reading.python!];
  if (chosen.length > 0) return [...chosen, 'python'];
  const program = argv[reading.internals?.programIndex ?? reading.programIndex];
  const head = program === undefined ? undefined : port.shebangOf(program);
  return head === undefined ? undefined : pythonFromShebang(head);
}

/**
 * The Python in the first line of a script: `#!/opt/env/bin/python3 -I`, `#!/usr/bin/env python3`, or the form that pip
 * writes where the path is too long or holds a blank (`#!/bin/sh`, then `'''exec' /path/python "$0" "$@"`).
 */
export function pythonFromShebang(text: string): string[] | undefined {
  const [first, second] = text.split(/\r?\n/, 2) as [string, string?];
  const line = /^#!\s*(.+?)\s*$/.exec(first)?.[1];
  if (line === undefined) return undefined;
  const exec = /^'''exec'\s+(?:"([^"]+)"|(\S+))/.exec(second ?? '');
  if (exec && /\/sh$/.test(line)) return pythonOnly([(exec[1] ?? exec[2])!]);
  const words = line.split(/\s+/);
  if (programName(words[0]!) !== 'env') return pythonOnly(words);
  const inner = words.slice(1).filter((word) => word !== '-S' && !/^[A-Za-z_]\w*=/.test(word));
  return pythonOnly(inner);
}

const pythonOnly = (words: string[]): string[] | undefined =>
  words[0] !== undefined && isPython(programName(words[0])) ? words : undefined;
