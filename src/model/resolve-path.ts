import { isAbsolute, join } from 'node:path';
import type { Ports } from '../core/index.ts';

/** `~` and `~/…` as the home folder; relative paths below `cwd`. */
export function resolvePath(path: string, ports: Ports, cwd: string): string {
  const home = /^~(?=$|[/\\])/.test(path) ? join(ports.homeDir, path.slice(1)) : path;
  return isAbsolute(home) ? home : join(cwd, home);
}
