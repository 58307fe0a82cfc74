import type { ChildProcess } from 'node:child_process';
import { accessSync, constants, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { ProgramOutcome, ProgramPort } from '../core/index.ts';

/** Most output kept of one stream, bytes; a program that writes more is not one of those asked here. */
const OUTPUT_LIMIT_BYTES = 20 * 1024 ** 2;
/** A grandchild can hold the pipes open after the program ended: how long its last output is waited for. */
const DRAIN_MS = 200;

function collect(stream: NodeJS.ReadableStream | null): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream?.on('data', (chunk: Buffer) => {
    size += chunk.length;
    if (size <= OUTPUT_LIMIT_BYTES) chunks.push(chunk);
  });
  return () => Buffer.concat(chunks).toString('utf8');
}

/** The program leads its own process group, so that a wrapper script and what it started end together. */
function killGroup(child: ChildProcess): void {
  try {
    if (child.pid !== undefined && process.platform !== 'win32') process.kill(-child.pid, 'SIGKILL');
    else child.kill('SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

async function runProgram(
  file: string,
  args: readonly string[],
  timeoutMs: number,
  env: NodeJS.ProcessEnv,
): Promise<ProgramOutcome> {
  // Loading it takes longer than most of what snug does, and many commands start nothing.
  const { spawn } = await import('node:child_process');
  return new Promise((settle) => {
    let child: ChildProcess;
    try {
      child = spawn(file, [...args], {
        env,
        stdio: ['ignore', 'pipe', 'pipe'],
        detached: process.platform !== 'win32',
        windowsHide: true,
      });
    } catch {
      settle({ exitCode: undefined, stdout: '', stderr: '', failure: 'other' });
      return;
    }
    const stdout = collect(child.stdout);
    const stderr = collect(child.stderr);
    let settled = false;
    const finish = (exitCode: number | undefined, failure?: ProgramOutcome['failure']): void => {
      if (settled) return;
      settled = true;
      clearTimeout(timer);
      child.stdout?.destroy();
      child.stderr?.destroy();
      // A process stuck in the driver outlives SIGKILL; it must not keep us alive too.
      child.unref();
      settle({ exitCode, stdout: stdout(), stderr: stderr(), ...(failure && { failure }) });
    };
    const outcome = (code: number | null): void => finish(code ?? undefined, code === null ? 'other' : undefined);
    const timer = setTimeout(() => {
      killGroup(child);
      finish(undefined, 'timeout');
    }, timeoutMs);
    child.on('error', (thrown: NodeJS.ErrnoException) =>
      finish(undefined, thrown.code === 'ENOENT' ? 'not-found' : 'other'),
    );
    child.on('close', outcome);
    child.on('exit', (code) => setTimeout(() => outcome(code), DRAIN_MS).unref());
  });
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}

/** As a shell would: a name with a slash is a path, otherwise each folder of PATH in turn (PATHEXT on Windows). */
function findOnPath(name: string, environment: NodeJS.ProcessEnv): string | undefined {
  const windows = process.platform === 'win32';
  const endings = windows ? ['', ...(environment.PATHEXT ?? '.EXE;.CMD;.BAT').split(';')] : [''];
  const isPath = (windows ? /[/\\]/ : /\//).test(name);
  const paths = isPath ? [name] : (environment.PATH ?? '').split(delimiter).map((folder) => join(folder || '.', name));
  return paths.flatMap((path) => endings.map((ending) => resolve(path + ending))).find(isProgram);
}

/** `ProgramPort` over real processes: no shell, no stdin, killed with its group when the time is up. */
export const programPort = (environment: NodeJS.ProcessEnv): ProgramPort => ({
  run: (file, args, { timeoutMs }) => runProgram(file, args, timeoutMs, environment),
  which: (name) => findOnPath(name, environment),
});
