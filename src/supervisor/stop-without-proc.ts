import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import killTree from 'tree-kill';
import type { TreeStopper } from './stop-tree.ts';

/** The program tree-kill asks for children; without it tree-kill brings the whole process down. */
const LISTER = process.platform === 'darwin' ? 'pgrep' : 'ps';

function onPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

function send(pid: number, signal: NodeJS.Signals): void {
  if (onPath(LISTER)) {
    killTree(pid, signal, () => {});
    return;
  }
  try {
    process.kill(pid, signal);
  } catch {
    // It has just ended.
  }
}

/** Where there is no /proc: best effort, by parents and children as the system lists them at that moment. */
export function stopWithTreeKill(pid: number): TreeStopper {
  let deadline = Number.POSITIVE_INFINITY;
  let running: Promise<readonly number[]> | undefined;
  const run = async (): Promise<readonly number[]> => {
    send(pid, 'SIGTERM');
    while (isAlive(pid) && Date.now() < deadline) await sleep(50);
    if (!isAlive(pid)) return [];
    send(pid, 'SIGKILL');
    for (let looks = 0; looks < 100 && isAlive(pid); looks++) await sleep(50);
    return isAlive(pid) ? [pid] : [];
  };
  return {
    stop({ graceMs }) {
      deadline = Math.min(deadline, Date.now() + graceMs);
      running ??= run();
      return running;
    },
    stopping: () => running !== undefined,
  };
}
