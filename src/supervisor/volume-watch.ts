import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';

/** Free bytes of the volumes a run writes into; absent: not known. */
export interface FreeBytes {
  readonly shm?: number;
  readonly disk?: number;
}

/** Watches /dev/shm, which loader workers and NCCL fill, and the volume that is saved to. */
export interface VolumeWatch {
  /** Looks again, unless the last look still waits: a network volume may not answer for a long time. */
  readonly look: () => void;
  readonly now: () => FreeBytes;
  /** The least there was of each. */
  readonly least: () => FreeBytes;
}

const SHM = '/dev/shm';

/** Of the nearest folder that is there. */
async function freeBytesAt(path: string): Promise<number | undefined> {
  try {
    const { bavail, bsize } = await statfs(path);
    return bavail * bsize;
  } catch (thrown) {
    const above = dirname(path);
    const isMissing = (thrown as NodeJS.ErrnoException).code === 'ENOENT';
    return isMissing && above !== path ? freeBytesAt(above) : undefined;
  }
}

/** `outputDir`: absolute. `shm`: for tests. */
export function createVolumeWatch(outputDir: string, shm: string = SHM): VolumeWatch {
  let waiting = false;
  let now: FreeBytes = {};
  let least: FreeBytes = {};
  const lower = (before: number | undefined, found: number): number => Math.min(before ?? found, found);
  const look = async (): Promise<void> => {
    const [shmBytes, diskBytes] = await Promise.all([freeBytesAt(shm), freeBytesAt(outputDir)]);
    now = {
      ...(shmBytes === undefined ? {} : { shm: shmBytes }),
      ...(diskBytes === undefined ? {} : { disk: diskBytes }),
    };
    least = {
      ...least,
      ...(now.shm === undefined ? {} : { shm: lower(least.shm, now.shm) }),
      ...(now.disk === undefined ? {} : { disk: lower(least.disk, now.disk) }),
    };
  };
  return {
    look() {
      if (waiting) return;
      waiting = true;
      void look().finally(() => {
        waiting = false;
      });
    },
    now: () => now,
    least: () => least,
  };
}
