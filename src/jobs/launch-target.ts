import { isAbsolute, join, relative } from 'node:path';
import { error, fail, ok, type Ports, type Result } from '../core/index.ts';
import {
  type LaunchReading,
  type LaunchSource,
  type NativeConfig,
  type ReadContext,
  readBareFile,
  readBareFilePartly,
  readLaunch,
  readLaunchPartly,
} from '../dialects/index.ts';

/** What the user put behind `snug run`: a file that describes the run, or the training command itself. */
export type LaunchTarget =
  | { readonly kind: 'config'; readonly path: string }
  | { readonly kind: 'command'; readonly argv: readonly string[] };

/** A target as read, with the text of every file that was looked at. */
export interface TargetReading {
  readonly reading: LaunchReading;
  readonly policy: NativeConfig['policy'];
  /** By the path used in origins. */
  readonly sources: Readonly<Record<string, string>>;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission is denied',
  EISDIR: 'it is a folder',
  ENOTFILE: 'it is not a plain file',
  ETOOBIG: 'it is too large for a launch config',
  ELOOP: 'its links go round in a circle',
};

/** Reads files for the dialects and remembers what was read. */
export function createReadContext(
  ports: Ports,
  visibleGpus: number | undefined,
  sources: Record<string, string>,
): ReadContext {
  const source = (path: string): Result<LaunchSource> => {
    const expanded = path.startsWith('~/') ? join(ports.homeDir, path.slice(2)) : path;
    const absolutePath = isAbsolute(expanded) ? expanded : join(ports.cwd, expanded);
    const read = ports.files.readText(absolutePath);
    if (!read.ok) {
      return fail(
        error('unreadable-file', `cannot read ${path}: ${REASONS[read.code] ?? read.code}`, {
          location: path,
          help:
            read.code === 'ENOENT'
              ? `check the path; it was looked for in ${isAbsolute(expanded) ? 'that very place' : ports.cwd}`
              : 'give a readable text file',
        }),
      );
    }
    sources[path] = read.value;
    return ok({ path, absolutePath, text: read.value });
  };
  return {
    cwd: ports.cwd,
    homeDir: ports.homeDir,
    environment: ports.environment,
    source,
    files: ports.files,
    visibleGpus,
  };
}

/** Reads what the user gave. Errors: the config or a file it names cannot be read. */
export function readTarget(ports: Ports, target: LaunchTarget, visibleGpus: number | undefined): Result<TargetReading> {
  const sources: Record<string, string> = {};
  const context = createReadContext(ports, visibleGpus, sources);
  if (target.kind === 'command') {
    const reading = readLaunch(target.argv, context);
    return reading.ok ? ok({ reading: reading.value, policy: {}, sources }) : reading;
  }
  const read = readBareFile(shownPath(ports, target.path), context);
  return read.ok ? ok({ ...read.value, sources }) : read;
}

/** What can be said of a launch of whose files some cannot be read; undefined: nothing. */
export function readWithoutFiles(ports: Ports, target: LaunchTarget): LaunchReading | undefined {
  const context = createReadContext(ports, undefined, {});
  return target.kind === 'command'
    ? readLaunchPartly(target.argv, context).reading
    : readBareFilePartly(shownPath(ports, target.path), context);
}

/** A path below the working directory is shown relative to it. */
function shownPath({ cwd }: Ports, path: string): string {
  if (!isAbsolute(path)) return path;
  const below = relative(cwd, path);
  return below === '' || below.startsWith('..') ? path : below;
}
