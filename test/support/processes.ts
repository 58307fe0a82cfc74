import { readdirSync, readFileSync } from 'node:fs';

/** One process as the kernel knows it: a pid comes back into use, a pid with its start time does not. */
export interface SeenProcess {
  readonly pid: number;
  /** Field 22 of /proc/PID/stat, clock ticks after boot. */
  readonly started: string;
}

/** State letter and start time; undefined when the process is gone. */
function statOf(pid: number): { state: string; started: string } | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name in parentheses may hold spaces and parentheses of its own.
    const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
    return { state: fields[0]!, started: fields[19]! };
  } catch {
    return undefined;
  }
}

/** Whether it runs still; a zombie waits for its parent only and counts as ended. */
export function isRunning({ pid, started }: SeenProcess): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.started === started && stat.state !== 'Z' && stat.state !== 'X';
}

/** Reads the `pid start-time` lines that a trainer fixture wrote. */
export const readRecordedPids = (path: string): SeenProcess[] =>
  readFileSync(path, 'utf8')
    .trim()
    .split('\n')
    .map((line) => {
      const [pid, started] = line.split(' ');
      return { pid: Number(pid), started: started! };
    });

/** Every running process that was started with this variable in its environment: descendants inherit it, whoever is their parent now. */
export function processesWithVariable(assignment: string): SeenProcess[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      const pid = Number(name);
      try {
        if (!readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0').includes(assignment)) return [];
      } catch {
        return [];
      }
      const stat = statOf(pid);
      return stat && isRunning({ pid, started: stat.started }) ? [{ pid, started: stat.started }] : [];
    });
}
