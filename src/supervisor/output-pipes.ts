import { spawnSync } from 'node:child_process';
import { closeSync, constants, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Both ends of one pipe. Reading never waits, writing does. */
export interface PipeEnds {
  readonly readFd: number;
  readonly writeFd: number;
}

export interface OutputPipes {
  readonly stdout: PipeEnds;
  readonly stderr: PipeEnds;
}

/**
 * Pipes for a child's output. What Node makes for a child are sockets, and those cannot be opened by name: under them
 * `echo … > /dev/stderr`, `tee /dev/stderr` and `open('/dev/stdout')` fail with "No such device or address". Node cannot make a pipe
 * either, but `mkfifo` can; its names are gone before the child starts. Undefined where that does not work (no `mkfifo`, no file
 * system that takes one, not Linux): then it has to be sockets. `elsewhere`: a folder to try after the one for temporary files.
 */
export function makeOutputPipes(elsewhere: string): OutputPipes | undefined {
  if (process.platform !== 'linux') return undefined;
  return makePipesIn(tmpdir()) ?? makePipesIn(elsewhere);
}

/** A file system that hangs must not keep a run from starting. */
const PATIENCE_MS = 2_000;

function makePipesIn(parent: string): OutputPipes | undefined {
  const opened: number[] = [];
  let folder: string | undefined;
  const open = (path: string): PipeEnds => {
    // The reading end first: without it the writing end would wait.
    const readFd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    opened.push(readFd);
    const writeFd = openSync(path, constants.O_WRONLY);
    opened.push(writeFd);
    return { readFd, writeFd };
  };
  try {
    // Nobody else may look into this folder, so the names in it are ours.
    folder = mkdtempSync(join(parent, 'snug-pipes-'));
    const [stdout, stderr] = [join(folder, 'stdout'), join(folder, 'stderr')];
    if (spawnSync('mkfifo', ['-m', '600', stdout, stderr], { stdio: 'ignore', timeout: PATIENCE_MS }).status !== 0)
      return undefined;
    return { stdout: open(stdout), stderr: open(stderr) };
  } catch {
    for (const fd of opened) closeSync(fd);
    return undefined;
  } finally {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
}
