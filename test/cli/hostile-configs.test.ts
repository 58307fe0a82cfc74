import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeSandbox, type Sandbox } from '../support/snug-cli.ts';

const AXOLOTL = 'base_model: acme/otter\nmicro_batch_size: 2\ngradient_accumulation_steps: 4\nsequence_len: 512\n';
const LEVELS = 'abcdefghi'.split('');
/** Nine levels of nine: 9^9 values for whoever follows the aliases. */
const BOMB = LEVELS.map((name, level) => {
  const below = level === 0 ? '"lol"' : `*${LEVELS[level - 1]}`;
  return `${name}: &${name} [${new Array(9).fill(below).join(', ')}]`;
}).join('\n');

const KEYS = Array.from({ length: 6000 }, (_, at) => `key_${at}: otter\n`).join('');

const utf16 = (text: string, order: 'le' | 'be'): Buffer => {
  const bytes = Buffer.from(`\ufeff${text}`, 'utf16le');
  return order === 'le' ? bytes : bytes.swap16();
};

/** Name, content, and the code of the diagnostic; undefined: it is read. */
const FILES: readonly (readonly [what: string, name: string, content: string | Buffer, code: string | undefined])[] = [
  ['10 MB of YAML', 'huge.yaml', AXOLOTL + 'note: otter\n'.repeat(850_000), 'unreadable-file'],
  ['aliases of aliases', 'bomb.yaml', `${AXOLOTL}${BOMB}\n`, 'yaml-aliases'],
  ['brackets in brackets', 'deep.yaml', `${AXOLOTL}a: ${'['.repeat(50_000)}\n`, 'yaml-too-deep'],
  ['maps in maps', 'deep.json', `{"a":${'{"a":'.repeat(20_000)}`, 'json-syntax'],
  ['6000 keys', 'many.yaml', AXOLOTL + KEYS, 'yaml-too-many-keys'],
  ['NUL bytes', 'nul.yaml', `${AXOLOTL}a: \0\n`, 'unreadable-file'],
  ['a program', 'tool.yaml', Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0, 0, 0, 0xff]), 'unreadable-file'],
  [
    'a picture',
    'cat.yaml',
    Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0xfe, 0xdb]),
    'unreadable-file',
  ],
  ['a tab', 'tab.yaml', `${AXOLOTL}\tadapter: lora\n`, 'yaml-tab'],
  ['a byte order mark', 'bom.yaml', `\ufeff${AXOLOTL}`, undefined],
  ['CRLF', 'crlf.yaml', AXOLOTL.replaceAll('\n', '\r\n'), undefined],
  ['UTF-16, little end first', 'le.yaml', utf16(AXOLOTL, 'le'), undefined],
  ['UTF-16, big end first', 'be.yaml', utf16(AXOLOTL, 'be'), undefined],
];

let box: Sandbox;
beforeAll(() => {
  box = makeSandbox();
  for (const [, name, content] of FILES) writeFileSync(join(box.folder, name), content);
  execFileSync('mkfifo', [join(box.folder, 'pipe.yaml')]);
  mkdirSync(join(box.folder, 'folder.yaml'));
  symlinkSync('loop.yaml', join(box.folder, 'loop.yaml'));
});
afterAll(() => box.remove());

/** One start: what it printed, and how many files it left behind. */
async function snug(args: readonly string[]) {
  const before = readdirSync(box.folder).sort();
  const { exitCode, stdout, stderr } = await box.run(args);
  return { exitCode, stdout, stderr, wrote: readdirSync(box.folder).sort().length - before.length };
}

describe.each(['check', 'run'])('snug %s FILE', (verb) => {
  const refused = FILES.filter(([, , , code]) => code !== undefined);
  it.each([
    ...refused.map(([what, name, , code]) => [what, name, code!] as const),
    ['a FIFO', 'pipe.yaml', 'unreadable-file'] as const,
    ['a folder', 'folder.yaml', 'unreadable-file'] as const,
    ['a link to itself', 'loop.yaml', 'unreadable-file'] as const,
    ['nothing there', 'gone.yaml', 'unreadable-file'] as const,
  ])('says what is wrong with %s and writes nothing', async (_, name, code) => {
    const { exitCode, stdout, stderr, wrote } = await snug([verb, name]);
    expect(stderr).toContain(`error[${code}]`);
    expect(stderr.length).toBeLessThan(2000);
    expect([exitCode, stdout, wrote]).toEqual([3, '', 0]);
  });
});

describe('snug check FILE', () => {
  it.each(FILES.filter(([, , , code]) => code === undefined).map(([what, name]) => [what, name] as const))(
    'reads a config with %s',
    async (_, name) => {
      const { exitCode, stdout, wrote } = await snug(['check', '--json', name]);
      const { spec } = JSON.parse(stdout);
      expect([exitCode, spec.per_device_train_batch_size.value, spec.max_length.value, wrote]).toEqual([12, 2, 512, 0]);
    },
  );
});

describe('a config behind a command', () => {
  it.each([
    ['trl sft --config bomb.yaml', 'yaml-aliases'],
    ['trl sft --config huge.yaml', 'unreadable-file'],
    ['llamafactory-cli train deep.yaml', 'yaml-too-deep'],
    ['accelerate launch --config_file pipe.yaml train.py', 'unreadable-file'],
    ['torchrun train.py --do_train --output_dir o --deepspeed deep.json', 'json-syntax'],
  ])('%s', async (line, code) => {
    const { exitCode, stderr, wrote } = await snug(['run', '--', ...line.split(' ')]);
    expect(stderr).toContain(`error[${code}]`);
    expect([exitCode, wrote]).toEqual([3, 0]);
  });
});

describe('100 kB of arguments', () => {
  it.each([
    ['one long word', ['--model_name_or_path', 'x'.repeat(100_000)]],
    ['many flags', new Array(5000).fill('').flatMap((_, at) => [`--flag_${at}`, 'a value'])],
    ['one flag again and again', new Array(9000).fill('').flatMap((_, at) => ['--seed', String(at)])],
    ['quotes and dollars', new Array(20_000).fill('"$\'`\\')],
  ])('are read: %s', async (_, words) => {
    const { exitCode, wrote, stderr } = await snug(['check', '--', 'trl', 'sft', ...words]);
    expect(stderr).not.toContain('own-fault');
    expect([[3, 12].includes(exitCode!), wrote]).toEqual([true, 0]);
  });
});
