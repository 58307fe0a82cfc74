import type { Ports } from '../core/index.ts';
import { type LaunchReading, pythonOf, type ShebangPort } from '../dialects/index.ts';
import type { PythonCommand } from './packages.ts';

/** The first two lines of any console script. */
const SHEBANG_BYTES = 1024;

/** First lines of programs on PATH. */
export const shebangPort = (ports: Ports): ShebangPort => ({
  shebangOf: (program) => {
    const path = program.includes('/') ? program : ports.programs.which(program);
    const head = path === undefined ? undefined : ports.files.readBytes(path, 0, SHEBANG_BYTES);
    return head?.ok ? new TextDecoder().decode(head.value) : undefined;
  },
});

/**
 * The Python that will run the trainer: the interpreter the command names, the one of the environment a wrapper chooses, or the
 * one in the first line of the console script (`trl`, `torchrun`, …) that PATH leads to. Undefined: it cannot be told.
 */
export const trainerPython = (ports: Ports, reading: LaunchReading): PythonCommand | undefined =>
  pythonOf(reading, shebangPort(ports));
