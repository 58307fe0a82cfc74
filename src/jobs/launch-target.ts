import { isAbsolute, join, relative } from 'node:path';
import { error, fail, ok, type Ports, type ReadOutcome, type Result } from '../core/index.ts';
import {
  type FoundVersions,
  type LaunchReading,
  type LaunchSource,
  type NativeConfig,
  type ReadContext,
  readBareFile,
  readBareFilePartly,
  readLaunch,
  readLaunchPartly,
} from '../dialects/index.ts';
import { whyUnreadable } from './why-unreadable.ts';

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

/** Largest text that is taken for a launch config, bytes. Real ones have a fiftieth of it. */
const LIMIT_BYTES = 256 * 1024;
/** Shell scripts, host files, files of variables. */
const OTHER_LIMIT_BYTES = 128 * 1024;
/** Python files are only searched for words. */
const PYTHON_LIMIT_BYTES = 4 * 1024 * 1024;

/** Text that can be a config: not too large, and in an encoding that the trainers read. */
function readSmallText(ports: Ports, path: string): ReadOutcome<string> {
  const isPython = path.endsWith('.py');
  const config = /\.(?:ya?ml|json)$/i.test(path);
  const limit = isPython ? PYTHON_LIMIT_BYTES : config ? LIMIT_BYTES : OTHER_LIMIT_BYTES;
  const info = ports.files.info(path);
  if (info && info.sizeBytes > limit) return { ok: false, code: 'ETOOBIG' };
  const read = ports.files.readText(path);
  if (!read.ok || isPython) return read;
  if (read.value.includes('\0')) return { ok: false, code: 'EBINARY' };
  // The decoder puts this in place of bytes that are no UTF-8; a shell does not mind them in a comment.
  return config && read.value.includes('\ufffd') ? { ok: false, code: 'EILSEQ' } : read;
}

/** Reads files for the dialects and remembers what was read. */
export function createReadContext(
  ports: Ports,
  visibleGpus: number | undefined,
  sources: Record<string, string>,
  versions?: FoundVersions,
): ReadContext {
  const source = (path: string): Result<LaunchSource> => {
    const expanded = path.startsWith('~/') ? join(ports.homeDir, path.slice(2)) : path;
    const absolutePath = isAbsolute(expanded) ? expanded : join(ports.cwd, expanded);
    const read = readSmallText(ports, absolutePath);
    if (!read.ok) {
      return fail(
        error(
          'unreadable-file',
          `cannot read ${path}: ${whyUnreadable(read.code)}${read.code === 'ETOOBIG' ? ' for a launch config' : ''}`,
          {
            location: path,
            help:
              read.code === 'ENOENT'
                ? `check the path; it was looked for in ${isAbsolute(expanded) ? 'that very place' : ports.cwd}`
                : 'give a readable text file',
          },
        ),
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
    ...(versions ? { versions } : {}),
  };
}

/** Reads what the user gave. Errors: the config or a file it names cannot be read. */
export function readTarget(
  ports: Ports,
  target: LaunchTarget,
  visibleGpus: number | undefined,
  versions?: FoundVersions,
): Result<TargetReading> {
  const sources: Record<string, string> = {};
  const context = createReadContext(ports, visibleGpus, sources, versions);
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
