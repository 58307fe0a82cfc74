import { closeSync } from 'node:fs';
import { basename } from 'node:path';
import { isatty } from 'node:tty';

/**
 * A terminal may be closed under us. Node puts its settings back at the end and aborts where it is gone (`ResetStdio` of Node 20 to
 * 24), which would take the exit code with it; a descriptor that is closed it leaves alone.
 */
export function outliveTerminal(): void {
  const terminals = [0, 1, 2].filter((fd) => isatty(fd));
  process.on('exit', () => {
    for (const fd of terminals) if (!isatty(fd)) closeSync(fd);
  });
}

/**
 * Whether `nohup` stands in front of us. It has SIGHUP ignored, but Node takes every disposition back when it starts; what is left of
 * it is the name that shells give to the program they start.
 */
export const underNohup = (environment: Readonly<Record<string, string | undefined>>): boolean =>
  basename(environment._ ?? '') === 'nohup';
