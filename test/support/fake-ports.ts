import type { FileInfo, Ports, ProgramOutcome } from '../../src/core/index.ts';

/** What a fake machine holds. Everything not named is simply not there. */
export interface FakeWorld {
  /** Absolute path → content. Parent folders exist by themselves. */
  readonly files?: Readonly<Record<string, string | Uint8Array>>;
  /** Folders that exist though no file lies in them. */
  readonly folders?: readonly string[];
  /** Paths that are neither file nor folder (FIFOs, devices). */
  readonly others?: readonly string[];
  /** Path → errno name: the path exists, reading it fails with this. */
  readonly unreadable?: Readonly<Record<string, string>>;
  /** Pretended size of a file in bytes, where it should differ from its content (a checkpoint of many GiB). */
  readonly sizes?: Readonly<Record<string, number>>;
  /** Mount point → volume; the longest mount point that is a prefix of the path answers. */
  readonly volumes?: Readonly<Record<string, { readonly freeBytes: number; readonly totalBytes: number }>>;
  /** Answers a program call; undefined: no such program. What is left out is exit code 0 and no output. */
  readonly programs?: (file: string, args: readonly string[]) => Partial<ProgramOutcome> | undefined;
  /** Name → absolute path, for `which`. */
  readonly which?: Readonly<Record<string, string>>;
  /** errno name with which every write fails: EROFS, ENOSPC. */
  readonly unwritable?: string;
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly homeDir?: string;
  readonly platform?: string;
  readonly now?: () => Date;
  /** Present: `ports.download` exists and answers by URL; undefined is a 404. */
  readonly downloads?: (url: string) => string | { readonly status: number; readonly error: string } | undefined;
}

/** Ports without a machine behind them, and a record of what was asked. */
export interface FakePorts extends Ports {
  /** Program calls in order, each as one line: `nvidia-smi --query-gpu=…`. */
  readonly calls: readonly string[];
  /** URLs asked for, in order. */
  readonly downloaded: readonly string[];
  /** Absolute path → text of every file written; later reads see it too. */
  readonly written: ReadonlyMap<string, string>;
}

/** `/a/./b/../c/` → `/a/c`. */
function normalise(path: string): string {
  const parts: string[] = [];
  for (const part of path.split('/')) {
    if (part === '' || part === '.') continue;
    if (part === '..') parts.pop();
    else parts.push(part);
  }
  return `/${parts.join('/')}`;
}

const under = (path: string, folder: string): boolean =>
  path === folder || path.startsWith(folder === '/' ? '/' : `${folder}/`);

/** Builds in-memory `Ports` from a description of a machine. */
export function fakePorts(world: FakeWorld = {}): FakePorts {
  const cwd = world.cwd ?? '/project';
  const absolute = (path: string): string => normalise(path.startsWith('/') ? path : `${cwd}/${path}`);
  const byPath = <T>(record: Readonly<Record<string, T>> | undefined): Map<string, T> =>
    new Map(Object.entries(record ?? {}).map(([path, value]) => [absolute(path), value]));

  const files = new Map(
    [...byPath(world.files)].map(([path, content]) => [
      path,
      typeof content === 'string' ? new TextEncoder().encode(content) : content,
    ]),
  );
  const unreadable = byPath(world.unreadable);
  const sizes = byPath(world.sizes);
  const volumes = byPath(world.volumes);
  const others = new Set((world.others ?? []).map(absolute));
  const folders = new Set((world.folders ?? []).map(absolute));
  const everything = (): string[] => [...files.keys(), ...unreadable.keys(), ...sizes.keys(), ...others, ...folders];
  const calls: string[] = [];
  const downloaded: string[] = [];
  const written = new Map<string, string>();

  const info = (asked: string): FileInfo | undefined => {
    const path = absolute(asked);
    if (others.has(path)) return { kind: 'other', sizeBytes: 0, modifiedMs: 0 };
    const content = files.get(path);
    if (content || sizes.has(path)) {
      return { kind: 'file', sizeBytes: sizes.get(path) ?? content?.byteLength ?? 0, modifiedMs: 0 };
    }
    if (everything().some((each) => each !== path && under(each, path)) || folders.has(path)) {
      return { kind: 'folder', sizeBytes: 0, modifiedMs: 0 };
    }
    return unreadable.has(path) ? { kind: 'file', sizeBytes: 0, modifiedMs: 0 } : undefined;
  };

  const read = (asked: string) => {
    const path = absolute(asked);
    const code = unreadable.get(path);
    if (code) return { ok: false, code } as const;
    const found = info(path);
    if (!found) return { ok: false, code: 'ENOENT' } as const;
    if (found.kind !== 'file') return { ok: false, code: found.kind === 'folder' ? 'EISDIR' : 'ENOTFILE' } as const;
    return { ok: true, value: files.get(path) ?? new Uint8Array() } as const;
  };

  return {
    calls,
    downloaded,
    written,
    cwd,
    homeDir: world.homeDir ?? '/home/someone',
    platform: world.platform ?? 'linux',
    environment: world.environment ?? {},
    now: world.now ?? (() => new Date('2031-05-06T07:08:09Z')),
    files: {
      info,
      readText: (path) => {
        const outcome = read(path);
        return outcome.ok ? { ok: true, value: new TextDecoder().decode(outcome.value) } : outcome;
      },
      readBytes: (path, offset, length) => {
        const outcome = read(path);
        return outcome.ok ? { ok: true, value: outcome.value.slice(offset, offset + length) } : outcome;
      },
      list: (asked) => {
        const folder = absolute(asked);
        const names = everything()
          .filter((each) => each !== folder && under(each, folder))
          .map((each) => each.slice(folder === '/' ? 1 : folder.length + 1).split('/')[0]!);
        return [...new Set(names)].sort();
      },
      volume: (asked) => {
        const path = absolute(asked);
        const mount = [...volumes.keys()].filter((each) => under(path, each)).sort((a, b) => b.length - a.length)[0];
        return mount === undefined ? undefined : volumes.get(mount);
      },
    },
    programs: {
      run: async (file, args) => {
        calls.push([file, ...args].join(' '));
        const answer = world.programs?.(file, args);
        if (!answer) return { exitCode: undefined, stdout: '', stderr: '', failure: 'not-found' };
        return { exitCode: answer.failure ? undefined : 0, stdout: '', stderr: '', ...answer };
      },
      which: (name) => world.which?.[name],
    },
    store: {
      makeFolder: (asked) => {
        const path = absolute(asked);
        if (world.unwritable) return { ok: false, code: world.unwritable };
        folders.add(path);
        return { ok: true, value: undefined };
      },
      writeAtomic: (asked, text) => {
        const path = absolute(asked);
        if (world.unwritable) return { ok: false, code: world.unwritable };
        files.set(path, new TextEncoder().encode(text));
        written.set(path, text);
        return { ok: true, value: undefined };
      },
      link: (target, asked) => {
        const path = absolute(asked);
        if (world.unwritable) return { ok: false, code: world.unwritable };
        const content = files.get(absolute(target));
        if (content) files.set(path, content);
        return { ok: true, value: undefined };
      },
      remove: (asked) => {
        files.delete(absolute(asked));
        return { ok: true, value: undefined };
      },
    },
    ...(world.downloads && {
      download: async (url: string) => {
        downloaded.push(url);
        const answer = world.downloads?.(url);
        if (typeof answer === 'string') return { ok: true, text: answer } as const;
        return { ok: false, ...(answer ?? { status: 404, error: 'Not Found' }) } as const;
      },
    }),
  };
}
