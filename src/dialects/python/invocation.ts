import type { Position, Target } from '../dialect.ts';
import { lastOption, programName, scanOptions } from '../scan-options.ts';
import { isPython, PYTHON_OPTIONS } from './keys.ts';

/** `python [options] (script.py | -m module) arguments`, as typed. */
export interface PythonInvocation {
  /** The interpreter's token; undefined: a script that names its own, or `-m` handed on by `uv run`. */
  readonly interpreter: number | undefined;
  /** undefined: nothing that is started can be told (`-c code`, standard input, an unknown option). */
  readonly target: Target | undefined;
}

/** Reads the command at `position.index` as a start of Python; undefined: it is none. */
export function pythonInvocation({ argv, index, above }: Position): PythonInvocation | undefined {
  const token = argv[index];
  if (token === undefined) return undefined;
  if (isPython(programName(token))) {
    const scan = scanOptions(argv, index + 1, PYTHON_OPTIONS);
    // `-um module`: -m as the last of several letters.
    if (scan.stuck && /^-[A-Za-ln-z]+m$/.test(argv[scan.next]!)) {
      return { interpreter: index, target: moduleAt(argv, scan.next + 1) };
    }
    const readable = !scan.stuck && !lastOption(scan, '-c');
    return { interpreter: index, target: readable ? targetAt(argv, scan.next) : undefined };
  }
  const behindUv = above.at(-1)?.dialect.id === 'uv';
  if (behindUv && (token === '-m' || token === '--module'))
    return { interpreter: undefined, target: targetAt(argv, index) };
  if (/\.pyw?$/.test(token) && !token.startsWith('-')) return { interpreter: undefined, target: targetAt(argv, index) };
  return undefined;
}

function targetAt(argv: readonly string[], at: number): Target | undefined {
  const token = argv[at];
  if (token === undefined || token === '-') return undefined;
  if (token === '-m' || token === '--module') return moduleAt(argv, at + 1);
  // `-mmodule` in one word.
  if (token.startsWith('-m')) return { form: 'module', name: token.slice(2), index: at, argsFrom: at + 1 };
  return { form: 'script', name: token, index: at, argsFrom: at + 1 };
}

function moduleAt(argv: readonly string[], at: number): Target | undefined {
  const name = argv[at];
  return name === undefined ? undefined : { form: 'module', name, index: at, argsFrom: at + 1 };
}
