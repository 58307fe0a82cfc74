import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** A folder without an owner's note is left alone this long: its maker may be about to write the note. */
const NOTE_GRACE_MS = 5_000;

const errno = (error) => (error instanceof Error && 'code' in error ? error.code : undefined);

/** Whether a process with this pid exists; one of another user counts. */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errno(error) === 'EPERM';
  }
}

/** The lock of a process that is gone (killed, machine restarted) belongs to nobody. */
function isStale(folder) {
  try {
    return !isAlive(Number(readFileSync(join(folder, 'pid'), 'utf8')));
  } catch {
    try {
      return Date.now() - statSync(folder).mtimeMs > NOTE_GRACE_MS;
    } catch {
      return true;
    }
  }
}

/** Runs `work` while this process alone holds `folder`; waits for another holder that lives, takes over from a dead one. */
export async function withLock(folder, work, { onWait = () => {}, pollMs = 500 } = {}) {
  for (let waited = false; ; waited = true) {
    try {
      mkdirSync(folder);
      break;
    } catch (error) {
      if (errno(error) !== 'EEXIST') throw error;
      if (isStale(folder)) {
        rmSync(folder, { recursive: true, force: true });
        continue;
      }
      if (!waited) onWait();
      await sleep(pollMs);
    }
  }
  try {
    writeFileSync(join(folder, 'pid'), String(process.pid));
    return await work();
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
