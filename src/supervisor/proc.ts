import {
  closeSync,
  existsSync,
  lstatSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs';

/** One line of `/proc/<pid>/stat`. */
export interface ProcessStat {
  readonly pid: number;
  readonly parent: number;
  readonly session: number;
  /** `R`, `S`, `D`, `Z`, … */
  readonly state: string;
  /** Clock ticks since boot; with the pid it names one process for good. */
  readonly startTicks: number;
  /** Processor time used so far, clock ticks. */
  readonly cpuTicks: number;
}

/** Much more than a process's `stat` or `status` has. */
const ROOM = Buffer.allocUnsafeSlow(16 * 1024);

/**
 * A small file of /proc, latin1; undefined when its process is gone. `readFileSync` asks for a size that is always 0 and takes fresh
 * buffers for each file: three times the work, ten times a second.
 */
export function readProcFile(path: string): string | undefined {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch {
    return undefined;
  }
  try {
    return ROOM.toString('latin1', 0, readSync(fd, ROOM, 0, ROOM.length, 0));
  } catch {
    return undefined;
  } finally {
    closeSync(fd);
  }
}

export const hasProc = (): boolean => existsSync('/proc/self/stat');

/** Undefined when the process is gone. The command name may hold spaces and brackets: fields are counted from its last one. */
export function readStat(pid: number): ProcessStat | undefined {
  const text = readProcFile(`/proc/${pid}/stat`);
  if (text === undefined) return undefined;
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ', 20);
  const [state, parent, , session] = fields;
  const startTicks = Number(fields[19]);
  if (state === undefined || !Number.isFinite(startTicks)) return undefined;
  const cpuTicks = Number(fields[11]) + Number(fields[12]);
  return { pid, parent: Number(parent), session: Number(session), state, startTicks, cpuTicks };
}

/** One process for good: a pid comes back into use, a pid with its start time (clock ticks since boot) does not. */
export interface ProcessId {
  readonly pid: number;
  readonly startTicks: number;
}

/** Undefined where there is no /proc, or no such process. */
export function processIdOf(pid: number): ProcessId | undefined {
  const stat = readStat(pid);
  return stat && { pid, startTicks: stat.startTicks };
}

/** Whether it runs: by pid and start time, by the pid alone where that is all that is known. A zombie does not. */
export function isProcessAlive({ pid, startTicks }: { readonly pid: number; readonly startTicks?: number }): boolean {
  if (hasProc()) {
    const stat = readStat(pid);
    return !isGone(stat) && (startTicks === undefined || stat?.startTicks === startTicks);
  }
  try {
    return process.kill(pid, 0);
  } catch (thrown) {
    return (thrown as NodeJS.ErrnoException).code === 'EPERM';
  }
}

/** Pids of all processes that can be seen. */
export const listPids = (): number[] => readdirSync('/proc').map(Number).filter(Number.isInteger);

/** Every process that can be seen. */
export const readAllStats = (): ProcessStat[] => listPids().flatMap((pid) => readStat(pid) ?? []);

/** A zombie holds no memory and no device; whoever should reap it may never do so in a container without an init. */
export const isGone = (stat: ProcessStat | undefined): boolean =>
  stat === undefined || stat.state === 'Z' || stat.state === 'X' || stat.state === 'x';

/** What an open file of a process is (`socket:[4711]`, `pipe:[815]`); undefined when it cannot be read. */
export function readOpenFile(pid: number, fd: number): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return undefined;
  }
}

/** The same for an open pipe or socket; undefined for any other file. */
export function readOpenPipe(pid: number, fd: number): string | undefined {
  try {
    const stats = statSync(`/proc/${pid}/fd/${fd}`);
    return stats.isFIFO() || stats.isSocket() ? readOpenFile(pid, fd) : undefined;
  } catch {
    return undefined;
  }
}

const WRITABLE = 0o200;

/** Whether a process has one of these files open for writing. Other users' processes cannot be looked into. */
export function canWriteTo(pid: number, files: ReadonlySet<string>): boolean {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).some(
      (fd) => files.has(readOpenFile(pid, Number(fd)) ?? '') && (lstatSync(`${folder}/${fd}`).mode & WRITABLE) !== 0,
    );
  } catch {
    return false;
  }
}

/** Whether a process was started with this `NAME=value` in its environment. Other users' processes cannot be looked into. */
export function hasInEnvironment(pid: number, assignment: string): boolean {
  try {
    return readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(assignment);
  } catch {
    return false;
  }
}
