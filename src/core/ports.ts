/**
 * Everything snug asks of the outside world. The real ones live in `cli/`; rooms below `jobs/` never import `node:fs`,
 * `node:child_process`, clock or environment themselves. A test hands in its own.
 */
export interface Ports {
  readonly files: FilePort;
  readonly programs: ProgramPort;
  /** Where run folders are written; the user's own files never are. */
  readonly store: StorePort;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Absolute path of the working directory. */
  readonly cwd: string;
  readonly homeDir: string;
  /** `process.platform`. */
  readonly platform: string;
  readonly now: () => Date;
  /** Only present with `--online`; returns the body of a GET, or an error text. */
  readonly download?: (
    url: string,
  ) => Promise<{ ok: true; text: string } | { ok: false; status: number; error: string }>;
}

export interface FileInfo {
  readonly kind: 'file' | 'folder' | 'other';
  readonly sizeBytes: number;
  readonly modifiedMs: number;
}

/** Synchronous on purpose: a preflight reads a handful of small files, and parsers stay plain functions. */
export interface FilePort {
  /** Undefined when there is nothing at `path`; symlinks are followed. */
  readonly info: (path: string) => FileInfo | undefined;
  readonly readText: (path: string) => ReadOutcome<string>;
  /** At most `length` bytes from `offset` (safetensors headers without the tensors). */
  readonly readBytes: (path: string, offset: number, length: number) => ReadOutcome<Uint8Array>;
  /** Names in a folder, sorted; empty when it cannot be listed. */
  readonly list: (path: string) => readonly string[];
  /** Free bytes for an unprivileged user on the volume of the nearest existing parent of `path`, and its total. */
  readonly volume: (path: string) => { readonly freeBytes: number; readonly totalBytes: number } | undefined;
}

export type ReadOutcome<T> =
  | { readonly ok: true; readonly value: T }
  /** `code` is the errno name: ENOENT, EACCES, EISDIR, ETOOBIG (our own size limit), … */
  | { readonly ok: false; readonly code: string };

/** Writes that are whole or not there at all. Failures carry the errno name. */
export interface StorePort {
  readonly makeFolder: (path: string) => ReadOutcome<undefined>;
  /** Replaces the file in one step; a crash leaves the old one. */
  readonly writeAtomic: (path: string, text: string) => ReadOutcome<undefined>;
  /** A symbolic link at `path` that leads to `target`, absolute. */
  readonly link: (target: string, path: string) => ReadOutcome<undefined>;
  /** Takes away a file of our own; nothing there is no failure. */
  readonly remove: (path: string) => ReadOutcome<undefined>;
}

export interface ProgramOutcome {
  /** undefined: it could not be started (`failure` says why), or it was ended by the timeout. */
  readonly exitCode: number | undefined;
  readonly stdout: string;
  readonly stderr: string;
  readonly failure?: 'not-found' | 'timeout' | 'other';
}

export interface ProgramPort {
  /** Runs a small program to its end without a shell. Never throws. */
  readonly run: (
    file: string,
    args: readonly string[],
    options: { readonly timeoutMs: number },
  ) => Promise<ProgramOutcome>;
  /** Absolute path of `name` on PATH, as a shell would find it. */
  readonly which: (name: string) => string | undefined;
}
