import type { OptionTable } from '../scan-options.ts';

/** Options of the interpreter itself. Source: `python --help`, CPython Modules/main.c. */
export const PYTHON_OPTIONS: OptionTable = {
  flags: [...'bBdEhiIOPqRsStuvVx?'].map((letter) => `-${letter}`),
  values: ['-W', '-X', '--check-hash-based-pycs', '-c'],
  // What follows `-m` is a module and then its arguments, all of them.
  stops: ['-m'],
};

const PYTHON = /^(?:python|pypy)(?:\d+(?:\.\d+)?t?)?w?$/;

/** `python`, `python3.11`, `/opt/env/bin/python`. */
export const isPython = (name: string): boolean => PYTHON.test(name);
