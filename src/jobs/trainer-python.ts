import type { Ports } from '../core/index.ts';
import { type LaunchReading, pythonOf } from '../dialects/index.ts';
import type { PythonCommand } from './packages.ts';

/** Long enough for any `#!` line. */
const SHEBANG_BYTES = 512;

/**
 * The Python that will run the trainer: the interpreter the command names, or the one in the first line of the console script
 * (`trl`, `torchrun`, …) that PATH leads to. Undefined: it cannot be told.
 */
export function trainerPython(ports: Ports, reading: LaunchReading): PythonCommand | undefined {
  return pythonOf(reading, {
    shebangOf: (program) => {
      const path = program.includes('/') ? program : ports.programs.which(program);
      const head = path === undefined ? undefined : ports.files.readBytes(path, 0, SHEBANG_BYTES);
      return head?.ok ? new TextDecoder().decode(head.value).split('\n')[0] : undefined;
    },
  });
}
