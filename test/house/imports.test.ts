import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { expect, it } from 'vitest';

const SRC = resolve(import.meta.dirname, '../../src');

/** The floors of CONTRIBUTING.md: a room imports only from lower floors, never from its own. */
const FLOORS: Readonly<Record<string, number>> = {
  core: 0,
  spec: 1,
  dialects: 2,
  model: 2,
  hardware: 2,
  diagnosis: 2,
  memory: 3,
  planner: 4,
  supervisor: 4,
  report: 5,
  jobs: 6,
  cli: 7,
};

const sources = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'));

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), 'utf8');
  return [...text.matchAll(/(?:from|import)\s*\(?\s*['"](\.{1,2}\/[^'"]+)['"]/g)].map((match) =>
    relative(SRC, resolve(SRC, dirname(file), match[1]!)),
  );
}

/** `importer -> imported` for every import that goes up, sideways, or past another room's index. */
function brokenImports(files: readonly string[], imports: (file: string) => string[]): string[] {
  const room = (path: string): string => path.split('/')[0]!;
  return files.flatMap((file) =>
    imports(file)
      .filter((target) => room(target) !== room(file) && room(target) !== '..')
      .filter((target) => !(FLOORS[room(target)]! < FLOORS[room(file)]!) || target !== join(room(target), 'index.ts'))
      .map((target) => `${file} -> ${target}`),
  );
}

it('knows the floor of every room', () => {
  expect([...new Set(sources.map((file) => file.split('/')[0]))].sort()).toEqual(Object.keys(FLOORS).sort());
});

it('lets rooms import only from lower floors, through their index', () => {
  expect(sources.length).toBeGreaterThan(20);
  expect(brokenImports(sources, importsOf)).toEqual([]);
});

it('notices an import that goes up, sideways or past an index', () => {
  const planted: Record<string, string[]> = {
    'model/a.ts': [
      '../package.json',
      'memory/index.ts',
      'hardware/index.ts',
      'core/bytes.ts',
      'core/index.ts',
      'model/b.ts',
    ],
  };
  expect(brokenImports(Object.keys(planted), (file) => planted[file]!)).toEqual([
    'model/a.ts -> memory/index.ts',
    'model/a.ts -> hardware/index.ts',
    'model/a.ts -> core/bytes.ts',
  ]);
});

it('keeps files, processes, clock and environment out of the pure rooms', () => {
  const pure = ['core', 'spec', 'model', 'hardware', 'dialects', 'diagnosis', 'memory', 'planner', 'report'];
  const impure = sources
    .filter((file) => pure.includes(file.split('/')[0]!))
    .filter((file) =>
      /from 'node:(fs|child_process|os|process|http|https|net)|\bprocess\.(env|cwd|exit|std)|\bDate\.now\(|new Date\(\)/.test(
        readFileSync(join(SRC, file), 'utf8'),
      ),
    );
  expect(impure).toEqual([]);
});
