import { readdirSync, readFileSync, statSync } from 'node:fs';
import { basename, dirname, extname, join, relative, resolve } from 'node:path';
import { performance } from 'node:perf_hooks';
import { filePort } from '../src/cli/file-port.ts';
import { error, fail, ok } from '../src/core/index.ts';
import {
  type LaunchReading,
  type ReadContext,
  readBareFile,
  readBareFilePartly,
  readLaunch,
  readLaunchPartly,
  splitCommand,
} from '../src/dialects/index.ts';

/** Longest that one launch may take to be read, milliseconds. */
const LIMIT_MS = 100;

interface Row {
  readonly name: string;
  readonly reading: LaunchReading | undefined;
  readonly problem: string;
  readonly ms: number;
}

/** A context over the real files, `given` in front of them (the files a recorded command comes with). */
function contextIn(cwd: string, given: Readonly<Record<string, string>> = {}): ReadContext {
  return {
    cwd,
    homeDir: '/nowhere',
    environment: {},
    visibleGpus: undefined,
    files: filePort,
    source: (path) => {
      const absolutePath = resolve(cwd, path);
      if (given[path] !== undefined) return ok({ path, absolutePath, text: given[path] });
      const read = filePort.readText(absolutePath);
      if (read.ok) return ok({ path, absolutePath, text: read.value });
      return fail(error('unreadable-file', `cannot read ${path}: ${read.code}`, { location: path }));
    },
  };
}

/** The best of three: the first pays for what is loaded and compiled once. */
function timed<T>(read: () => T): { readonly value: T; readonly ms: number } {
  let best = Number.POSITIVE_INFINITY;
  let value: T;
  for (let turn = 0; turn < 3; turn += 1) {
    const began = performance.now();
    value = read();
    best = Math.min(best, performance.now() - began);
  }
  return { value: value!, ms: best };
}

function readConfig(folder: string, path: string): Row {
  const context = contextIn(folder);
  const name = `${basename(folder)}/${path}`;
  const { value, ms } = timed(() => readBareFile(path, context));
  if (value.ok) return { name, reading: value.value.reading, problem: '', ms };
  return { name, reading: readBareFilePartly(path, context), problem: value.error[0]!.message, ms };
}

function readCommand(line: string, number: number, folder: string): Row {
  const { command, files } = JSON.parse(line) as { command: string; files?: Record<string, string> };
  const name = `line ${number}: ${command.replaceAll(/\s+/g, ' ').slice(0, 60)}`;
  const context = contextIn(folder, files);
  const words = splitCommand(command);
  if (!words.ok) return { name, reading: undefined, problem: words.error[0]!.message, ms: 0 };
  const { value, ms } = timed(() => readLaunch(words.value, context));
  if (value.ok) return { name, reading: value.value, problem: '', ms };
  return { name, reading: readLaunchPartly(words.value, context).reading, problem: value.error[0]!.message, ms };
}

function* filesBelow(path: string): Generator<string> {
  if (!statSync(path).isDirectory()) yield path;
  else for (const name of readdirSync(path).sort()) yield* filesBelow(join(path, name));
}

const CONFIG = new Set(['.yaml', '.yml', '.json', '.sh', '.sbatch', '.slurm']);

function rowsOf(path: string): Row[] {
  if (path.endsWith('.jsonl')) {
    const lines = readFileSync(path, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== '');
    return lines.map((line, at) => readCommand(line, at + 1, dirname(path)));
  }
  return [...filesBelow(path)]
    .filter((file) => CONFIG.has(extname(file)))
    .map((file) => {
      // The first folder is a repository; its files name each other from there.
      const [repository, ...rest] = relative(path, file).split('/');
      return rest.length > 0
        ? readConfig(join(path, repository!), rest.join('/'))
        : readConfig(dirname(file), basename(file));
    });
}

function show({ name, reading, problem, ms }: Row): string {
  const stack = reading?.stack.map(({ dialect }) => dialect).join('+') || '-';
  const known = Object.values(reading?.spec ?? {}).filter((setting) => setting && setting.value !== null).length;
  const open = Object.entries(reading?.spec ?? {}).filter(([, setting]) => setting?.value === null);
  return [
    `${ms.toFixed(1).padStart(7)} ms`,
    `${String(known).padStart(3)} fields`,
    `${String(reading?.unread.length ?? 0).padStart(3)} unread`,
    stack.padEnd(44),
    name,
    open.length > 0 ? `[unknown: ${open.map(([setting]) => setting).join(', ')}]` : '',
    problem && `[${problem}]`,
  ].join('  ');
}

/** Reads configs and recorded commands. Arguments: files, folders or commands.jsonl. */
export function main(argv: readonly string[]): number {
  const paths = argv.length > 0 ? argv : ['../shared/configs', '../shared/commands.jsonl'];
  const rows = paths.flatMap(rowsOf);
  for (const row of rows) console.log(show(row));
  const slow = rows.filter(({ ms }) => ms > LIMIT_MS);
  const read = rows.filter(({ reading }) => reading !== undefined).length;
  const longest = Math.max(0, ...rows.map(({ ms }) => ms));
  console.log(`\n${read} of ${rows.length} read, longest ${longest.toFixed(1)} ms, ${slow.length} over ${LIMIT_MS} ms`);
  return slow.length > 0 ? 1 : 0;
}
