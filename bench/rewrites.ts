import { readdirSync, readFileSync, statSync } from 'node:fs';
import { extname, join, relative, resolve } from 'node:path';
import { filePort } from '../src/cli/file-port.ts';
import { error, fail, ok } from '../src/core/index.ts';
import { type LaunchReading, type ReadContext, readBareFile, readLaunch, writeLaunch } from '../src/dialects/index.ts';
import { probeValues } from '../src/dialects/probe-values.ts';
import type { SettingName, SpecChange } from '../src/spec/index.ts';

/** Who starts a config that does not say it itself. */
const STARTERS: readonly (readonly string[])[] = [
  ['trl', 'sft', '--config'],
  ['accelerate', 'launch', 'scripts/sft.py', '--config'],
  ['accelerate', 'launch', 'trl/scripts/sft.py', '--model_name_or_path', 'a/b', '--config_file'],
  ['torchrun', '--nproc-per-node', '2', 'run_clm.py', '--model_name_or_path', 'a/b', '--do_train', '--deepspeed'],
];

function contextIn(cwd: string, copies: ReadonlyMap<string, string> = new Map()): ReadContext {
  return {
    cwd,
    homeDir: '/nowhere',
    environment: {},
    visibleGpus: 2,
    files: filePort,
    source: (path) => {
      const absolutePath = resolve(cwd, path);
      const copy = copies.get(absolutePath) ?? copies.get(path);
      if (copy !== undefined) return ok({ path, absolutePath, text: copy });
      const read = filePort.readText(absolutePath);
      if (read.ok) return ok({ path, absolutePath, text: read.value });
      return fail(error('unreadable-file', `cannot read ${path}`, { location: path }));
    },
  };
}

function readingsOf(path: string, context: ReadContext): LaunchReading[] {
  const bare = readBareFile(path, context);
  if (bare.ok) return [bare.value.reading];
  return STARTERS.flatMap((words) => {
    const argv = words.at(-1)!.startsWith('--config_file')
      ? ['accelerate', 'launch', '--config_file', path, ...words.slice(2, -1)]
      : [...words, path];
    const reading = readLaunch(argv, context);
    return reading.ok ? [reading.value] : [];
  });
}

/** Lines of `before` that are gone, the order kept. */
function linesGone(before: string, after: string): number {
  const [left, right] = [before.split('\n'), after.split('\n')];
  let row = new Array<number>(right.length + 1).fill(0);
  for (const line of left) {
    const next = [0];
    for (const [at, other] of right.entries())
      next.push(line === other ? row[at]! + 1 : Math.max(row[at + 1]!, next[at]!));
    row = next;
  }
  return left.length - row.at(-1)!;
}

/** The most lines that one setting may change: LoRA to QLoRA and back takes several keys. */
const MOST: Partial<Record<SettingName, number>> = { method: 8, lora: 12, quantization: 6 };

/** Without the order of keys, how checkpointing works that is off, and the dtype that adapters take from their base. */
function same(value: unknown): string {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return JSON.stringify(value);
  const { adapterDtype: _, ...rest } = value as Record<string, unknown>;
  const known = rest.enabled === false ? { enabled: false, offload: rest.offload } : rest;
  return JSON.stringify(Object.entries(known).sort(([one], [other]) => one.localeCompare(other)));
}

function* filesBelow(path: string): Generator<string> {
  if (!statSync(path).isDirectory()) yield path;
  else for (const name of readdirSync(path).sort()) yield* filesBelow(join(path, name));
}

/**
 * Every value that a real config can be told, written into a copy: it reads back as it was written, and every line but those
 * of the setting is there as before. Arguments: the folder of configs.
 */
export function main([folder = '../shared/configs']: readonly string[]): number {
  let written = 0;
  let wrong = 0;
  const told = new Map<string, number>();
  for (const file of filesBelow(folder)) {
    if (!['.yaml', '.yml', '.json'].includes(extname(file))) continue;
    const [repository, ...rest] = relative(folder, file).split('/');
    const root = join(folder, repository!);
    const context = contextIn(resolve(root));
    for (const reading of readingsOf(rest.join('/'), context)) {
      // Where the script cannot be read, recipes are known by the name of their folder.
      const recipe = reading.stack.some(({ dialect }) => dialect === 'alignment-handbook');
      for (const [name, values] of Object.entries(probeValues(reading.spec))) {
        const setting = name as SettingName;
        for (const to of values as readonly unknown[]) {
          if (reading.writable(setting, to) !== true) continue;
          const change = { setting, from: null, to, lever: 'bench', class: 'exact', savesBytes: 0, cost: '' };
          // Adapters come with the method that has them.
          const method = setting === 'lora' && !reading.spec.lora ? [{ ...change, setting: 'method', to: 'lora' }] : [];
          const changes = [change, ...method] as unknown as SpecChange[];
          const fitted = writeLaunch(reading, { changes, copyFolder: recipe ? '/copies/recipes' : '/copies' });
          const problems: string[] = [];
          if (!fitted.ok) problems.push(`is not written: ${fitted.error[0]!.message}`);
          else {
            for (const { source, before, text } of fitted.value.files) {
              if (before !== readFileSync(resolve(root, source), 'utf8'))
                problems.push(`another text before in ${source}`);
              const gone = linesGone(before, text);
              if (gone > (MOST[setting] ?? 2)) problems.push(`${gone} lines of ${source} are gone`);
            }
            const copies = new Map(fitted.value.files.map((each) => [each.copy, each.text]));
            const again = readLaunch(fitted.value.argv, {
              ...contextIn(resolve(root), copies),
              environment: fitted.value.env,
            });
            const found = again.ok ? again.value.spec[setting]?.value : again.error[0]!.message;
            if (same(found) !== same(to)) problems.push(`reads back as ${JSON.stringify(found)}`);
          }
          written += 1;
          told.set(repository!, (told.get(repository!) ?? 0) + 1);
          wrong += problems.length;
          for (const each of problems)
            console.log(`${relative(folder, file)}: ${name} = ${JSON.stringify(to)}: ${each}`);
        }
      }
    }
  }
  console.log([...told].map(([name, count]) => `${name} ${count}`).join(', '));
  console.log(`${written} rewrites, ${wrong} wrong`);
  return wrong > 0 ? 1 : 0;
}
