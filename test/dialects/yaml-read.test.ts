// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${…} is what OmegaConf and Hydra write in YAML
import { describe, expect, it } from 'vitest';
import type { FileValue } from '../../src/dialects/dialect.ts';
import { readYaml } from '../../src/dialects/yaml-read.ts';

const read = (text: string) => {
  const file = readYaml(text, 'conf/run.yaml');
  if (!file.ok) throw new Error(JSON.stringify(file.error));
  return file.value;
};

const problem = (text: string) => {
  const file = readYaml(text, 'conf/run.yaml');
  if (file.ok) throw new Error('was read');
  return file.error;
};

describe('scalars as PyYAML reads them', () => {
  it.each<[written: string, value: FileValue]>([
    ['8', 8],
    ['+8', 8],
    ['-0x1F', -31],
    ['0b101', 5],
    ['010', 8],
    ['08', '08'],
    ['0o10', '0o10'],
    ['1_000', 1000],
    ['12:30', 750],
    ['12:61', '12:61'],
    ['1:30.5', 90.5],
    ['2.0e-4', 2e-4],
    ['2e-4', '2e-4'],
    ['1e5', '1e5'],
    ['1.5e5', '1.5e5'],
    ['1.5e+5', 150000],
    ['.5', 0.5],
    ['5.', 5],
    ['.inf', Number.POSITIVE_INFINITY],
    ['-.INF', Number.NEGATIVE_INFINITY],
    ['inf', 'inf'],
    ['no', false],
    ['Off', false],
    ['YES', true],
    ['on', true],
    ['True', true],
    ['y', 'y'],
    ['nO', 'nO'],
    ['none', 'none'],
    ['None', 'None'],
    ['null', null],
    ['~', null],
    ['', null],
    ["'no'", 'no'],
    ['"8"', '8'],
    ["''", ''],
    ['2024-01-02', '2024-01-02'],
    ['!!str 8', '8'],
    ['!!float 2e-4', 2e-4],
    ['|-\n  a\n  b', 'a\nb'],
    ['>\n  a\n  b\n', 'a b\n'],
    ['[q, 8, no]', ['q', 8, false]],
    ['{a: {b: 1e-5}}', { a: { b: '1e-5' } }],
  ])('%s', (written, value) => expect(read(`k: ${written}`).get('k')?.value).toEqual(value));

  it('reads a number that is not one', () => expect(read('k: .NaN').get('k')?.value).toBeNaN());
});

describe('entries', () => {
  it('gives each key its line and its text, nested ones too', () => {
    const file = read('# head\nlora:\n  r: 0x10 # sixteen\nsets:\n  - path: "a"\n');
    expect(file.entries.map(({ keyPath, line, raw }) => [keyPath.join('.'), line, raw])).toEqual([
      ['lora', 2, 'r: 0x10 # sixteen'],
      ['lora.r', 3, '0x10'],
      ['sets', 4, '- path: "a"'],
      ['sets.0', 5, 'path: "a"'],
      ['sets.0.path', 5, '"a"'],
    ]);
    expect(file.get('lora', 'r')?.value).toBe(16);
    expect(file.get('lora', 'alpha')).toBeUndefined();
  });

  it('counts lines in files with Windows line ends and a byte order mark', () => {
    const file = read('\ufeffa: 1\r\n\r\nb: 2\r\n');
    expect(file.entries.map(({ keyPath, line }) => [keyPath[0], line])).toEqual([
      ['a', 1],
      ['b', 3],
    ]);
  });

  it('says what is not the last word about a value', () => {
    const file = read(
      'base: &b {seed: 1, lr: 0.5}\nrun:\n  <<: *b\n  lr: 0.1\ncopy: *b\ndir: ${out}/x\nbatch: {{ n }}\nmicro: 1\nmicro: 2\nenv: !include e.yaml\n',
    );
    expect(
      file.entries
        .filter(({ hazards }) => hazards.length > 0)
        .map(({ keyPath, value, hazards }) => [keyPath.join('.'), value, hazards.join()]),
    ).toEqual([
      ['base', { seed: 1, lr: 0.5 }, 'anchor'],
      ['base.seed', 1, 'anchor'],
      ['base.lr', 0.5, 'anchor'],
      ['run.seed', 1, 'merge'],
      ['copy', { seed: 1, lr: 0.5 }, 'alias'],
      ['copy.seed', 1, 'alias'],
      ['copy.lr', 0.5, 'alias'],
      ['dir', '${out}/x', 'interpolation'],
      ['batch', '{{ n }}', 'interpolation'],
      ['micro', 2, 'duplicate'],
      ['env', null, 'tag'],
    ]);
    expect(file.get('run')?.value).toEqual({ seed: 1, lr: 0.1 });
    expect(file.get('micro')?.line).toBe(9);
  });

  it('merges a list of maps in the order PyYAML does', () => {
    expect(read('a: &a {x: 1}\nb: &b {x: 2, y: 2}\nc: {<<: [*a, *b], z: 3}\n').get('c')?.value).toEqual({
      x: 1,
      y: 2,
      z: 3,
    });
  });

  it('takes a template inside a word for text, and a map in a map for a map', () => {
    expect(read('a: "{a: 1}"\nb: { c: { d: 1 } }\nprice: $5\n').entries.flatMap(({ hazards }) => hazards)).toEqual([]);
  });

  it.each(['', '# nothing\n', '---\n', '---\n# nothing\n...\n'])('finds nothing in %j', (text) => {
    expect(read(text).entries).toEqual([]);
  });
});

describe('files that cannot be read', () => {
  it.each<[text: string, code: string, location: string, excerpt: string]>([
    ['a: 1\nb: [2\nc: 3\n', 'yaml-syntax', '3:1', 'c: 3'],
    ['a: 1\nb: x: y\n', 'yaml-syntax', '2:4', 'b: x: y'],
    ['a: "open\n', 'yaml-syntax', '1:9', 'a: "open'],
    ['a: 1\n b: 2\n', 'yaml-syntax', '1:4', 'a: 1'],
    ['a:\n\tb: 1\n', 'yaml-tab', '2:1', '\tb: 1'],
    ['a: 1\n---\nb: 2\n', 'yaml-multiple-documents', '2:1', '---'],
    ['- a\n- b\n', 'yaml-not-a-mapping', '1:1', '- a'],
    ['just words\n', 'yaml-not-a-mapping', '1:1', 'just words'],
    ['? [a, b]\n: 1\n', 'yaml-key', '1:3', '? [a, b]'],
    ['a: *nowhere\n', 'yaml-alias', '1:4', 'a: *nowhere'],
    ['n: {{ batch }}0\n', 'yaml-interpolation', '1:15', 'n: {{ batch }}0'],
  ])('%j', (text, code, location, excerpt) => {
    expect(problem(text)).toEqual([
      {
        code,
        severity: 'error',
        message: expect.stringMatching(/^[^A-Z].*[^.]$/),
        location: `conf/run.yaml:${location}`,
        excerpt,
        help: expect.any(String),
      },
    ]);
  });

  it('stops at a nest that is too deep', () => {
    expect(problem(`a: ${'['.repeat(50_000)}`)[0]).toMatchObject({
      code: 'yaml-too-deep',
      location: 'conf/run.yaml:1:103',
    });
    expect(read(`a: ${'['.repeat(40)}${']'.repeat(40)}`).get('a')).toBeDefined();
  });

  it('stops at aliases that multiply', () => {
    const bomb = [...'bcdefghijk'].map((name, at) => `${name}: &${name} [${`*${'abcdefghijk'[at]}, `.repeat(8)}]`);
    expect(problem(['a: &a [x]', ...bomb].join('\n')).map(({ code }) => code)).toEqual(['yaml-aliases']);
    const merges = [...'bcdefghijklmnopqrstuvw'].map(
      (name, at) => `${name}: &${name} {<<: [${`*${'abcdefghijklmnopqrstuvw'[at]}, `.repeat(2)}]}`,
    );
    expect(read(['a: &a {x: 1}', ...merges].join('\n')).get('w', 'x')?.value).toBe(1);
    expect(read(`a: &a [x]\nb: [${'*a, '.repeat(200)}]\n`).get('b', '199', '0')?.value).toBe('x');
  });

  it('stops at a map inside itself', () => {
    expect(problem('a: &a {b: *a}\n').map(({ code }) => code)).toEqual(['yaml-aliases']);
  });
});
