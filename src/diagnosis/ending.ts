import type { Evidence } from './evidence.ts';

/** How the direct child ended, whichever way it was reported. */
export interface Ending {
  readonly how: 'well' | 'badly' | 'unknown';
  /** The signal, also where a shell or launcher reported it as 128 + N. */
  readonly signal: string | undefined;
}

const BY_NUMBER: Readonly<Record<number, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  4: 'SIGILL',
  6: 'SIGABRT',
  7: 'SIGBUS',
  8: 'SIGFPE',
  9: 'SIGKILL',
  11: 'SIGSEGV',
  15: 'SIGTERM',
};

/** Reads the end off an attempt's evidence; a log alone has none. */
export function endingOf(evidence: Evidence): Ending {
  const { exitCode, signal } = evidence;
  if (signal !== undefined) return { how: 'badly', signal };
  if (exitCode === undefined) return { how: 'unknown', signal: undefined };
  if (exitCode === 0) return { how: 'well', signal: undefined };
  return { how: 'badly', signal: exitCode > 128 ? BY_NUMBER[exitCode - 128] : undefined };
}
