import { createRequire } from 'node:module';
import { constants } from 'node:os';
import { PassThrough } from 'node:stream';
import { readStream } from './output-source.ts';
import type { Child, Exit } from './start-child.ts';

/** A terminal of the trainer's own, as the person's terminal sees it. */
export interface PseudoTerminal {
  readonly write: (bytes: Buffer) => void;
  readonly resize: (columns: number, rows: number) => void;
}

/** Where a pseudo-terminal gets its keys and its size from. */
export interface TerminalLink {
  readonly columns: number;
  readonly rows: number;
  /** Begins to hand keys on; returns how to stop. */
  readonly attach: (terminal: PseudoTerminal) => () => void;
}

interface Pty {
  readonly pid: number;
  readonly onData: (listener: (bytes: Buffer) => void) => void;
  readonly onExit: (listener: (exit: { exitCode: number; signal?: number }) => void) => void;
  readonly write: (bytes: Buffer) => void;
  readonly resize: (columns: number, rows: number) => void;
  readonly pause: () => void;
  readonly resume: () => void;
}

/** What is used of node-pty (https://github.com/microsoft/node-pty); Node itself cannot open a pseudo-terminal. */
export interface PtyModule {
  readonly spawn: (
    file: string,
    args: readonly string[],
    options: {
      readonly cols: number;
      readonly rows: number;
      readonly cwd: string;
      readonly env: Readonly<Record<string, string | undefined>>;
      readonly encoding: null;
    },
  ) => Pty;
}

/** The one whose binaries come with it first. */
const PACKAGES = ['@lydell/node-pty', 'node-pty'] as const;

/** Undefined: none of the packages is installed here, or has a binary for this machine. `from`: a file beside whose packages it is looked for. */
export function loadPty(from: string): PtyModule | undefined {
  const load = createRequire(from);
  for (const name of PACKAGES) {
    try {
      return load(name) as PtyModule;
    } catch {
      // Optional, as its binary is there for some platforms only.
    }
  }
  return undefined;
}

export interface InTerminal extends TerminalLink {
  readonly pty: PtyModule;
}

const SIGNAL_NAMES = new Map(Object.entries(constants.signals).map(([name, number]) => [number, name]));

const exitOf = ({ exitCode, signal }: { readonly exitCode: number; readonly signal?: number }): Exit =>
  signal
    ? { exitCode: undefined, signal: SIGNAL_NAMES.get(signal) as NodeJS.Signals | undefined, startFailure: undefined }
    : { exitCode, signal: undefined, startFailure: undefined };

/**
 * Starts the command in a pseudo-terminal, where bars, colours and questions are as they are without snug. A terminal has one stream
 * out: what is written to stderr comes on stdout as well.
 */
export function startInTerminal(
  argv: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string | undefined>>,
  { pty, columns, rows, attach }: InTerminal,
): Child {
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  stderr.end();
  let running: Pty;
  try {
    running = pty.spawn(argv[0]!, argv.slice(1), { cols: columns, rows, cwd, env, encoding: null });
  } catch {
    stdout.end();
    const exited = Promise.resolve<Exit>({ exitCode: undefined, signal: undefined, startFailure: 'other' });
    return { pid: undefined, stdout: readStream(stdout), stderr: readStream(stderr), exited, ownSession: false };
  }
  const detach = attach({ write: (bytes) => running.write(bytes), resize: (c, r) => running.resize(c, r) });
  running.onData((bytes) => {
    if (!stdout.write(bytes)) running.pause();
  });
  stdout.on('drain', () => running.resume());
  const exited = new Promise<Exit>((resolve) => {
    running.onExit((exit) => {
      detach();
      stdout.end();
      resolve(exitOf(exit));
    });
  });
  return { pid: running.pid, stdout: readStream(stdout), stderr: readStream(stderr), exited, ownSession: true };
}
