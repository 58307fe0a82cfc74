import { isAbsolute, join } from 'node:path';
import type { Ports } from '../core/index.ts';
import type { LaunchReading } from '../dialects/index.ts';

/** Why a run cannot go on from where it was, one clause, and where it starts over. */
export interface StartOver {
  readonly reason: string;
  /** undefined: where it would have written anyway. */
  readonly outputDir: string | undefined;
}

/**
 * Where a run starts over: a folder that is not there yet. What an attempt has saved may be all there is of the work so far, and is
 * never written over. undefined: the launch cannot be told another folder, or names none.
 */
export function freshOutputDir(ports: Ports, reading: LaunchReading): string | undefined {
  const outputDir = reading.spec.outputDir?.value ?? undefined;
  if (outputDir === undefined) return undefined;
  const base = outputDir.replace(/\/+$/, '');
  const isThere = (path: string): boolean =>
    ports.files.info(isAbsolute(path) ? path : join(ports.cwd, path)) !== undefined;
  let number = 1;
  while (isThere(`${base}-retry-${number}`)) number++;
  const fresh = `${base}-retry-${number}`;
  return reading.writable('outputDir', fresh) === true ? fresh : undefined;
}
