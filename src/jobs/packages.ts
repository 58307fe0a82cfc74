import type { Ports } from '../core/index.ts';

/** The trainer's Python: the words that start it, before `-c code`. */
export type PythonCommand = readonly string[];

/** Imports can take long on a cold disk; bitsandbytes loads CUDA libraries. */
const IMPORT_TIMEOUT_MS = 60_000;

/**
 * Whether a module imports in the trainer's Python, by importing it there: being installed is not enough, since a
 * bitsandbytes without its native library only fails when used. Undefined: that Python could not be started.
 */
export async function importsIn(ports: Ports, python: PythonCommand, module: string): Promise<boolean | undefined> {
  const [program, ...args] = python;
  if (program === undefined) return undefined;
  const outcome = await ports.programs.run(program, [...args, '-c', `import ${module}`], {
    timeoutMs: IMPORT_TIMEOUT_MS,
  });
  if (outcome.failure !== undefined || outcome.exitCode === undefined) return undefined;
  return outcome.exitCode === 0;
}
