import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { BareFile, Dialect, Example } from '../../src/dialects/dialect.ts';
import { readLaunch, writeLaunch } from '../../src/dialects/index.ts';
import { parseJson } from '../../src/dialects/json-text.ts';
import { probeValues } from '../../src/dialects/probe-values.ts';
import { REGISTRY } from '../../src/dialects/registry.ts';
import { exampleContext, layerOf, readExample } from '../../src/dialects/support.ts';
import { readYaml } from '../../src/dialects/yaml-read.ts';
import { formatOrigin, type SettingName } from '../../src/spec/index.ts';
import { change } from './phrase-book.ts';

const FOLDER = resolve(import.meta.dirname, '../../src/dialects');

/** What several dialects share, wrappers and scripts around launches, and the native config, which is a file. */
const SHARED = ['hf-argparser', 'native', 'shell', 'wrappers'];

const folders = readdirSync(FOLDER, { withFileTypes: true })
  .filter((entry) => entry.isDirectory() && !SHARED.includes(entry.name))
  .map((entry) => entry.name);

/** The template is held to the contract like the others, though it is in nobody's way. */
const TEMPLATE = 'template';

const isDialect = (value: unknown): value is Dialect =>
  typeof value === 'object' && value !== null && 'detect' in value && 'read' in value && 'kind' in value;

async function dialectsOf(folder: string): Promise<Dialect[]> {
  if (!existsSync(`${FOLDER}/${folder}/index.ts`)) return [];
  return Object.values(await import(`../../src/dialects/${folder}/index.ts`)).filter(isDialect);
}

const SETTINGS_OF_A_TRAINER: readonly SettingName[] = [
  'method',
  'perDeviceTrainBatchSize',
  'gradientAccumulationSteps',
  'maxLength',
  'mixedPrecision',
  'optim',
  'gradientCheckpointing',
];

const bareFiles = ({ files = {} }: Example): BareFile[] =>
  Object.entries(files).flatMap(([path, text]) => {
    if (path.endsWith('.json')) {
      const node = parseJson(text, path);
      const members = node.ok ? (node.value.members ?? []) : [];
      return [{ path, values: new Map(members.map((each) => [each.key, each.node.value])) }];
    }
    const yaml = /\.ya?ml$/.test(path) ? readYaml(text, path) : undefined;
    if (!yaml?.ok) return [];
    const top = yaml.value.entries.filter((entry) => entry.keyPath.length === 1);
    return [{ path, values: new Map(top.map((entry) => [entry.keyPath[0]!, entry.value])) }];
  });

const claimants = (file: BareFile): string[] =>
  REGISTRY.filter((dialect) => dialect.claimFile?.(file)).map((dialect) => dialect.id);

describe.each(folders)('src/dialects/%s', async (folder) => {
  const dialects = await dialectsOf(folder);
  const dialect = dialects[0]!;
  const examples = dialect?.examples ?? [];

  it('has an index.ts with one dialect of that name, in the registry', () => {
    expect(dialects.map(({ id }) => id)).toEqual([folder]);
    expect(REGISTRY.includes(dialect)).toBe(folder !== TEMPLATE);
    expect(REGISTRY.filter(({ id }) => id === folder).length).toBeLessThanOrEqual(1);
  });

  it('says where the tool documents its options, and is written in lower case', () => {
    expect(dialect.docs).toMatch(/^https:\/\/\S+$/);
    expect(readFileSync(`${FOLDER}/${folder}/index.ts`, 'utf8')).toContain(dialect.docs);
    expect(dialect.title).not.toBe('');
    expect(folder).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/);
  });

  it('has examples, and writes or says why not', () => {
    expect(examples.length, `give ${folder} examples: […] (see src/dialects/template)`).toBeGreaterThan(0);
    if (dialect.kind === 'trainer') expect(Boolean(dialect.write)).toBe(dialect.readOnly === undefined);
  });

  // The template is no part of the registry, so nothing there finds it.
  const read = folder === TEMPLATE ? [] : examples;

  it.each(read)('reads $command', (example) => {
    const reading = readExample(example);
    if (!reading.ok) throw new Error(JSON.stringify(reading.error, null, 1));
    const layer = layerOf(dialect, reading.value);
    expect(layer, 'another dialect took it').toBeDefined();
    expect(reading.value.stack.map((entry) => entry.dialect)).toContain(folder);
    const said = Object.keys(reading.value.spec);
    if (dialect.kind === 'trainer') expect(said).toEqual(expect.arrayContaining([...SETTINGS_OF_A_TRAINER]));
    for (const setting of Object.values(layer!.reading.spec)) {
      if (setting?.origin.kind !== 'default') continue;
      expect(setting.origin.version, formatOrigin(setting.origin)).toMatch(/^\d/);
      expect(setting.origin.tool).not.toBe('');
    }
    for (const { key, reason } of reading.value.unread) expect([key, reason].join(' ')).toMatch(/^\S+ \S/);
  });

  it.each(read)('is told what it says it can be told, and reads it back, in $command', (example) => {
    const context = exampleContext(example);
    const reading = readExample(example);
    if (!reading.ok) throw new Error(JSON.stringify(reading.error));
    const { spec, writable } = reading.value;
    let written = 0;
    for (const [name, values] of Object.entries(probeValues(spec))) {
      const setting = name as SettingName;
      for (const to of values) {
        const answer = writable(setting, to);
        // An adapter is nothing without the method that uses it, and a quantised base nothing without adapters.
        const needs = setting === 'lora' ? 'lora' : setting === 'quantization' ? 'qlora' : undefined;
        const method = needs !== undefined && !spec.lora ? [change('method', needs)] : [];
        const request = { changes: [change(setting, to), ...method], copyFolder: '/copies' };
        const fitted = writeLaunch(reading.value, request);
        const withMethod = method.length === 0 || writable('method', needs) === true;
        expect(fitted.ok, `${setting} ${JSON.stringify(to)}: ${answer}`).toBe(answer === true && withMethod);
        if (!fitted.ok) {
          expect(fitted.error.map((each) => each.message).join()).toContain(answer);
          continue;
        }
        const { argv, files } = fitted.value;
        expect(files.every((file) => file.before === example.files?.[file.source])).toBe(true);
        const copies = Object.fromEntries(files.map((file) => [file.copy, file.text]));
        const again = readLaunch(argv, exampleContext({ ...example, files: { ...example.files, ...copies } }));
        if (!again.ok) throw new Error(`${argv.join(' ')}: ${JSON.stringify(again.error)}`);
        expect(comparable(setting, again.value.spec[setting]?.value), argv.join(' ')).toEqual(comparable(setting, to));
        written += 1;
      }
    }
    if (dialect.readOnly !== undefined) expect(dialect.write).toBeUndefined();
    else if (dialect.kind === 'trainer') expect(written).toBeGreaterThan(5);
    expect(context.files.info('/copies')).toBeUndefined();
  });

  it.each(read)('drops no word of $command that nobody understands', (example) => {
    const [path, text] = Object.entries(example.files ?? {}).find(([name]) => /\.ya?ml$/.test(name)) ?? [];
    if (path === undefined || text === undefined) return;
    const reading = readExample({ ...example, files: { ...example.files, [path]: `${text}otter_mode: 7\n` } });
    const told = reading.ok
      ? [...reading.value.unread.map((each) => each.key), ...reading.value.diagnostics.map((each) => each.message)]
      : reading.error.map((each) => each.message);
    expect(told.join('\n')).toContain('otter_mode');
  });

  it('claims its own files when they are given alone, before anybody else', () => {
    const claimed = read.flatMap(bareFiles).map(claimants);
    if (dialect?.claimFile) expect(claimed.some(([first]) => first === folder)).toBe(true);
    for (const ids of claimed) if (ids.includes(folder)) expect(ids[0]).toBe(folder);
    if (dialect?.fileSign !== undefined) expect(dialect.claimFile).toBeDefined();
  });
});

/** What stands in the way of comparing: the dtype of adapters, which follows the base, and how a checkpointing works that is off. */
function comparable(setting: SettingName, value: unknown): unknown {
  if (setting === 'lora' && value) return { ...value, adapterDtype: undefined };
  if (setting === 'gradientCheckpointing' && value && !(value as { enabled: boolean }).enabled) {
    return { enabled: false };
  }
  return value;
}

it('registers nothing that has no folder', () => {
  const wrapper = REGISTRY.filter((dialect) => dialect.kind !== 'wrapper').map((dialect) => dialect.id);
  expect(wrapper.filter((id) => !folders.includes(id))).toEqual([]);
});
