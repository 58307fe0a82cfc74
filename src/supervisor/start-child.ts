import { closeSync, existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { isatty } from 'node:tty';
import { execa } from 'execa';
import type { AttemptRequest } from './contract.ts';
import { makeOutputPipes, type PipeEnds } from './output-pipes.ts';
import { type OutputSource, readPipe, readStream } from './output-source.ts';
import { startInTerminal } from './pseudo-terminal.ts';

export interface Exit {
  readonly exitCode: number | undefined;
  readonly signal: NodeJS.Signals | undefined;
  readonly startFailure: 'not-found' | 'not-executable' | 'other' | undefined;
}

/** A started child: its raw streams, and how it ended by itself (its pipes may stay open in a grandchild's hands). */
export interface Child {
  readonly pid: number | undefined;
  readonly stdout: OutputSource;
  readonly stderr: OutputSource;
  readonly exited: Promise<Exit>;
  /** It leads a session and process group of its own. */
  readonly ownSession: boolean;
}

/** Python holds its output back when it writes to a pipe, and loses it when killed; bars ask the terminal for its width. */
function childEnvironment(request: AttemptRequest): Record<string, string | undefined> {
  const columns = [request.stderr, request.stdout]
    .map((stream) => (stream as { columns?: number }).columns)
    .find(Boolean);
  return {
    ...(columns === undefined ? {} : { COLUMNS: String(columns) }),
    ...(showsColours(request) ? { FORCE_COLOR: '1' } : {}),
    PYTHONUNBUFFERED: '1',
    ...request.env,
  };
}

/** Both streams end on a screen, so what is coloured there without us (rich, Python's tracebacks) is so with us; never in a file. */
const showsColours = ({ stdout, stderr, env }: AttemptRequest): boolean =>
  [stdout, stderr].every((stream) => (stream as { isTTY?: boolean }).isTTY) && !env.NO_COLOR && env.TERM !== 'dumb';

function startFailureOf(code: string | undefined, request: AttemptRequest): Exit['startFailure'] {
  if (code === 'EACCES' || code === 'ENOEXEC' || code === 'EPERM') return 'not-executable';
  if (code !== 'ENOENT') return 'other';
  if (!existsSync(request.cwd)) return 'other';
  // The file is there, so what is missing is the interpreter of its first line.
  return request.argv[0]!.includes('/') && existsSync(request.argv[0]!) ? 'not-executable' : 'not-found';
}

/** Execa takes every descriptor, its types only those below 10. */
const writingEnd = (pipe: PipeEnds | undefined): 'pipe' | 3 => (pipe?.writeFd as 3 | undefined) ?? 'pipe';

/**
 * Starts the command without a shell.
 *
 * A terminal on stdin means a person at it: the child then stays in our process group, the terminal's foreground, so that it
 * may ask questions (a group in the background is stopped at its first read) and Ctrl-Z stops all of us. The price is that the
 * terminal itself delivers Ctrl-C to it. Without a terminal it gets a session of its own: a scheduler's or `timeout`'s signal
 * to our group then reaches it only once, through us, and everything in that session is known to be ours. If we are killed
 * outright it dies at its next line of output, as the reading end of its pipes is gone.
 */
export function startChild(request: AttemptRequest): Child {
  const { terminal, argv, cwd, env } = request;
  // It asks its terminal for the width, which may change.
  if (terminal) return startInTerminal(argv, cwd, { PYTHONUNBUFFERED: '1', ...env }, terminal);
  const foreground = request.foreground ?? isatty(0);
  const pipes = makeOutputPipes(dirname(request.logPath));
  const subprocess = execa(request.argv[0]!, request.argv.slice(1), {
    cwd: request.cwd,
    env: childEnvironment(request),
    extendEnv: false,
    stdin: 'inherit',
    stdout: writingEnd(pipes?.stdout),
    stderr: writingEnd(pipes?.stderr),
    buffer: false,
    reject: false,
    detached: !foreground,
    // Waiting, killing and cleaning up are ours: execa would send SIGKILL after 5 s, in the middle of a checkpoint.
    forceKillAfterDelay: false,
    windowsHide: true,
  });
  const exited = new Promise<Exit>((resolve) => {
    subprocess.once('exit', (exitCode, signal) =>
      resolve({ exitCode: exitCode ?? undefined, signal: signal ?? undefined, startFailure: undefined }),
    );
    subprocess.then((result) => {
      const code = (result as { code?: string }).code;
      if (subprocess.pid !== undefined) return;
      resolve({ exitCode: undefined, signal: undefined, startFailure: startFailureOf(code, request) });
    });
  });
  const sourceOf = (name: 'stdout' | 'stderr'): OutputSource => {
    if (!pipes) return readStream(subprocess[name]!);
    // Held open here, it would never end.
    closeSync(pipes[name].writeFd);
    return readPipe(pipes[name].readFd);
  };
  return {
    pid: subprocess.pid,
    stdout: sourceOf('stdout'),
    stderr: sourceOf('stderr'),
    exited,
    ownSession: !foreground && subprocess.pid !== undefined,
  };
}
