import { hostname } from 'node:os';
import { isProcessAlive, type ProcessId, processIdOf } from '../supervisor/index.ts';

/** A process on a machine, as a file of an earlier run names it. */
export interface NamedProcess extends Partial<ProcessId> {
  readonly pid: number;
  readonly host: string;
}

/** This machine's name for `pid`; undefined: it is not there. */
export function nameProcess(pid: number | undefined): NamedProcess | undefined {
  if (pid === undefined) return undefined;
  const known = processIdOf(pid);
  return { pid, host: hostname(), ...(known ? { startTicks: known.startTicks } : {}) };
}

/** Whether that very process runs. undefined: it is on another machine, which cannot be asked. */
export function stillRuns(process: NamedProcess): boolean | undefined {
  return process.host === hostname() ? isProcessAlive(process) : undefined;
}
