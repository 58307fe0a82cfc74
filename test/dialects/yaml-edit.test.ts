// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${…} is what OmegaConf and Hydra write in YAML
import { describe, expect, it } from 'vitest';
import type { FileValue } from '../../src/dialects/dialect.ts';
import { editYaml, type YamlEdit } from '../../src/dialects/yaml-edit.ts';
import { readYaml } from '../../src/dialects/yaml-read.ts';

const set = (dotted: string, value: FileValue): YamlEdit => ({ keyPath: dotted.split('.'), value });

function edited(text: string, ...edits: YamlEdit[]): string {
  const result = editYaml(text, edits, 'run.yaml');
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

function refused(text: string, ...edits: YamlEdit[]) {
  const result = editYaml(text, edits, 'run.yaml');
  if (result.ok) throw new Error(`was written: ${result.value}`);
  return result.error.map(({ code, location, help }) => [code, location, help]);
}

describe('editYaml replaces one value', () => {
  it.each<[what: string, before: string, edit: YamlEdit, after: string]>([
    ['a number before a comment', 'micro: 12   # per GPU\n', set('micro', 3), 'micro: 3   # per GPU\n'],
    ['with spaces around the colon', 'micro  :   12\n', set('micro', 3), 'micro  :   3\n'],
    ['single quotes stay', "optim: 'adafactor'\n", set('optim', 'lion_8bit'), "optim: 'lion_8bit'\n"],
    ['double quotes stay', 'optim: "adafactor"\n', set('optim', 'lion_8bit'), 'optim: "lion_8bit"\n'],
    ['a quoted number becomes a number', 'micro: "12"\n', set('micro', 3), 'micro: 3\n'],
    [
      'a word that YAML 1.1 takes for false',
      'mixed_precision: bf16\n',
      set('mixed_precision', 'no'),
      "mixed_precision: 'no'\n",
    ],
    ['false stays a boolean', 'packing: yes\n', set('packing', false), 'packing: false\n'],
    ['a small number', 'lr: 3e-4\n', set('lr', 2e-7), 'lr: 2.0e-7\n'],
    ['a string that looks like a number', 'lr: x\n', set('lr', '1e-5'), "lr: '1e-5'\n"],
    ['null', 'adapter: lora # kind\n', set('adapter', null), 'adapter: null # kind\n'],
    [
      'nothing becomes something',
      'adapter:   # none yet\nr: 4\n',
      set('adapter', 'qlora'),
      'adapter: qlora   # none yet\nr: 4\n',
    ],
    ['nothing at the end of the file', 'r: 4\nadapter:', set('adapter', 'qlora'), 'r: 4\nadapter: qlora'],
    ['Windows line ends', 'a: 1\r\nb: 2 # x\r\nc: 3\r\n', set('b', 7), 'a: 1\r\nb: 7 # x\r\nc: 3\r\n'],
    ['a byte order mark', '\ufeffa: 1\nb: 2\n', set('a', 9), '\ufeffa: 9\nb: 2\n'],
    ['no last newline', 'a: 1\nb: 2', set('b', 9), 'a: 1\nb: 9'],
    [
      'one level down',
      'lora:\n    r: 16 # rank\n    alpha: 32\n',
      set('lora.r', 8),
      'lora:\n    r: 8 # rank\n    alpha: 32\n',
    ],
    ['in a flow map', 'lora: { r: 16, alpha: 32 } # x\n', set('lora.r', 8), 'lora: { r: 8, alpha: 32 } # x\n'],
    [
      'in a list of maps',
      'sets:\n- path: a\n  rows: 5\n- path: b\n  rows: 6\n',
      set('sets.1.rows', 7),
      'sets:\n- path: a\n  rows: 5\n- path: b\n  rows: 7\n',
    ],
    ['several lines of plain text', 'note: one\n  two\nr: 1\n', set('note', 'three'), 'note: three\nr: 1\n'],
    ['a literal block', 'note: |\n  one\n  two\n\nr: 1\n', set('note', 'three'), 'note: three\n\nr: 1\n'],
    [
      'a block map',
      'ckpt:\n  every: 2\nr: 1\n',
      set('ckpt', { use_reentrant: false }),
      'ckpt: {use_reentrant: false}\nr: 1\n',
    ],
    ['a flow list', 'targets: [q, k]  # two\n', set('targets', ['q', 'v,o']), "targets: [q, 'v,o']  # two\n"],
    [
      'a JSON file',
      '{\n  "micro": 8,\n  "optim": null\n}\n',
      set('optim', 'sgd'),
      '{\n  "micro": 8,\n  "optim": "sgd"\n}\n',
    ],
    ['after a document start', '--- # head\nmicro: 8\n...\n', set('micro', 2), '--- # head\nmicro: 2\n...\n'],
    ['a key in quotes', '"micro": 8\n', set('micro', 2), '"micro": 2\n'],
    ['a key with a question mark', '? micro\n: 8\n', set('micro', 2), '? micro\n: 2\n'],
    [
      'an override of a merge key',
      'base: &b {micro: 8}\nrun:\n  <<: *b\n  micro: 4\n',
      set('run.micro', 2),
      'base: &b {micro: 8}\nrun:\n  <<: *b\n  micro: 2\n',
    ],
  ])('%s', (_, before, edit, after) => {
    expect(edited(before, edit)).toBe(after);
  });

  it('leaves the text alone where the value is already there', () => {
    const text = 'micro: 0x8   # hex\nlist: [ 1,2 ]\nempty:\n';
    expect(edited(text, set('micro', 8), set('list', [1, 2]), set('empty', null))).toBe(text);
  });
});

describe('editYaml adds a key', () => {
  it.each<[what: string, before: string, edit: YamlEdit, after: string]>([
    ['at the end', 'a: 1 # one\n\n# the end\n', set('b', 2), 'a: 1 # one\nb: 2\n\n# the end\n'],
    ['without a last newline', 'a: 1', set('b', 2), 'a: 1\nb: 2'],
    ['with Windows line ends', 'a: 1\r\n', set('b', 2), 'a: 1\r\nb: 2\r\n'],
    ['to a file with a byte order mark', '\ufeffa: 1\n', set('b', 2), '\ufeffa: 1\nb: 2\n'],
    ['to an empty file', '', set('b', 2), 'b: 2\n'],
    ['to a file of comments', '# nothing yet', set('b', 2), '# nothing yet\nb: 2'],
    [
      'to the right mapping',
      'lora:\n   r: 8\n   # why\nz: 1\n',
      set('lora.alpha', 16),
      'lora:\n   r: 8\n   alpha: 16\n   # why\nz: 1\n',
    ],
    ['after a nested mapping', 'top:\n  in:\n    x: 1\n', set('top.s', 2), 'top:\n  in:\n    x: 1\n  s: 2\n'],
    ['after a list', 'top:\n- x: 1\n  y:\n', set('b', 2), 'top:\n- x: 1\n  y:\nb: 2\n'],
    ['to a map in a list', 'top:\n- x: 1\n- x: 2\n', set('top.0.s', 5), 'top:\n- x: 1\n  s: 5\n- x: 2\n'],
    ['after a block of text', 'note: |\n  one\n\n# c\n', set('b', 2), 'note: |\n  one\nb: 2\n\n# c\n'],
    ['to a flow map', 'lora: {r: 8}\n', set('lora.alpha', 16), 'lora: {r: 8, alpha: 16}\n'],
    ['to an empty flow map', 'lora: {}\n', set('lora.alpha', 16), 'lora: {alpha: 16}\n'],
    ['before a trailing comma', 'lora: {\n  r: 8,\n}\n', set('lora.alpha', 16), 'lora: {\n  r: 8, alpha: 16,\n}\n'],
    ['to a JSON file', '{"r": 8}', set('optim', 'sgd'), '{"r": 8, "optim": "sgd"}'],
    ['as a map of settings', 'a: 1\n', set('lora', { r: 8, alpha: 16 }), 'a: 1\nlora:\n  r: 8\n  alpha: 16\n'],
    ['with its parent', 'a: 1\n', set('lora.r', 8), 'a: 1\nlora:\n  r: 8\n'],
    ['under an empty parent', 'lora: # none\na: 1\n', set('lora.r', 8), 'lora: {r: 8} # none\na: 1\n'],
    ['before a document end', 'a: 1\n...\n', set('b', 2), 'a: 1\nb: 2\n...\n'],
    [
      'beside a merge key that does not bring it',
      'b: &b {x: 1}\nr:\n  <<: *b\n',
      set('r.s', 2),
      'b: &b {x: 1}\nr:\n  <<: *b\n  s: 2\n',
    ],
  ])('%s', (_, before, edit, after) => {
    expect(edited(before, edit)).toBe(after);
  });

  it('adds several in the order they are asked for', () => {
    expect(edited('a: 1\n', set('l.r', 8), set('l.alpha', 16), set('b', 'x: y'))).toBe(
      "a: 1\nl:\n  r: 8\n  alpha: 16\nb: 'x: y'\n",
    );
  });
});

describe('editYaml refuses what would mean something else elsewhere', () => {
  it.each<[what: string, text: string, edit: YamlEdit, code: string, location: string]>([
    ['an alias', 'a: &x 8\nb: *x\n', set('b', 1), 'yaml-alias', 'run.yaml:2:4'],
    ['a map that is an alias', 'a: &x {r: 8}\nb: *x\n', set('b.r', 1), 'yaml-alias', 'run.yaml:2:4'],
    ['an anchored value', 'a: &x 8\nb: *x\n', set('a', 1), 'yaml-anchor', 'run.yaml:1:7'],
    ['inside an anchored map', 'a: &x\n  r: 8\nb: *x\n', set('a.r', 1), 'yaml-anchor', 'run.yaml:2:3'],
    [
      'what a merge key brings',
      'a: &x {r: 8}\nb:\n  <<: *x\n  s: 1\n',
      set('b.r', 1),
      'yaml-merge-key',
      'run.yaml:3:3',
    ],
    ['an interpolation', 'a: ${oc.env:BATCH}\n', set('a', 1), 'yaml-interpolation', 'run.yaml:1:4'],
    ['a template in quotes', 'a: "{{ batch }}"\n', set('a', 1), 'yaml-interpolation', 'run.yaml:1:4'],
    ['a bare template', 'a: {{ batch }}\n', set('a', 1), 'yaml-interpolation', 'run.yaml:1:4'],
    ['a key that stands twice', 'a: 1\nb: 2\na: 3\n', set('a', 1), 'yaml-duplicate-key', 'run.yaml:3:1'],
    ['a tag', 'a: !!int "8"\n', set('a', 1), 'yaml-tag', 'run.yaml:1:10'],
    ['a key below a single value', 'a: 8\n', set('a.b', 1), 'yaml-not-a-mapping', 'run.yaml:1:1'],
    ['a place past the end of a list', 'a: [1]\n', set('a.1', 1), 'yaml-not-a-mapping', 'run.yaml:1:4'],
    ['comments inside the value', 'a:\n  r: 8 # why\n', set('a', null), 'yaml-comment', 'run.yaml:2:3'],
    ['a second document', 'a: 1\n---\nb: 2\n', set('a', 2), 'yaml-multiple-documents', 'run.yaml:2:1'],
    ['a tab', 'a:\n\tb: 1\n', set('a.b', 2), 'yaml-tab', 'run.yaml:2:1'],
    ['a broken file', 'a: [1\nb: 2\n', set('b', 3), 'yaml-syntax', 'run.yaml:2:1'],
  ])('%s', (_, text, edit, code, location) => {
    expect(refused(text, edit)).toEqual([[code, location, expect.stringMatching(/\w/)]]);
  });

  it('says every reason at once', () => {
    expect(refused('a: &x 8\nb: *x\nc: ${d}\n', set('b', 1), set('c', 2)).map(([code]) => code)).toEqual([
      'yaml-alias',
      'yaml-interpolation',
    ]);
  });

  it('does not lengthen a block of text that ends without a newline', () => {
    expect(editYaml('note: |\n  one', [set('b', 1)], 'run.yaml')).toMatchObject({
      ok: false,
      error: [
        {
          code: 'yaml-edit',
          message: 'b cannot be set here without changing note',
          help: 'end the last line of the file with a newline',
        },
      ],
    });
  });

  it('still writes beside an anchor, an alias and an interpolation', () => {
    expect(edited('a: &x 8\nb: *x\nc: ${d}\ne: 1\n', set('e', 2))).toBe('a: &x 8\nb: *x\nc: ${d}\ne: 2\n');
  });
});

describe('whatever is written reads back, and nothing else moves', () => {
  const nasty = [
    '# head\nbase: &base\n  seed: 010\n  lr: 1e-5\nrun:\n  <<: *base\n  tags: [a, "b # c", {d: e}]   # list\n  text: >-\n    folded\n    text\n\n  tail:\nlast: "é: \\u00e9"   # done\n',
    '\ufeffwin: yes\r\nnested:\r\n    deep:\r\n        deeper: {x: 1, "y": [1, 2]}\r\n    # remark\r\n    after: ~\r\nlist:\r\n  -   k: 1\r\n      l: 2\r\n',
    '{"json": {"a": [1, 2, {"b": null}]}, "c": "d"}',
    "time: 12:30\ndate: 2024-01-02\nempty:\nquoted: 'it''s'\n\n\n# trailing",
    '---\n"key with space": 1\n? explicit\n: value\ntabbed:\tx\n',
  ];
  const values: FileValue[] = [
    0,
    -3,
    64,
    2.5,
    1e-7,
    3e21,
    true,
    false,
    null,
    '',
    ' ',
    'no',
    'On',
    'y',
    '~',
    '1e-5',
    '0x10',
    '12:30',
    '1_000',
    '2024-01-02',
    'a: b',
    'a #b',
    '- x',
    '#x',
    "it's",
    '"q"',
    'back\\slash',
    'line\nbreak',
    'tab\there',
    '{x}',
    '[x',
    'x]',
    'a, b',
    '*x',
    '&x',
    '!x',
    '%x',
    '@x',
    '`x',
    '?',
    '-',
    ':',
    'x:',
    '<<',
    '=',
    '---',
    '...',
    '.5',
    '.inf',
    'nan',
    '\u2028',
    '\u0085',
    '\ufeff',
    '\u0007',
    'adamw_torch',
    'meta/Model-7B',
    'C:\\dir',
    'é',
    ['a', 1, null],
    { r: 8, 'key: x': 'v, w' },
    {},
    [],
  ];
  const writable = nasty.flatMap((text) => {
    const keyPaths = entriesOf(text)
      .filter(({ hazards }) => hazards.length === 0)
      .map(({ keyPath }) => keyPath)
      .filter((keyPath) => editYaml(text, [{ keyPath, value: 77 }]).ok);
    return [...keyPaths, ['fresh'], ['fresh', 'inner']].map((keyPath) => ({ text, keyPath }));
  });

  it('has enough places to try', () => expect(writable.length).toBeGreaterThan(40));

  it.each(values.map((value, index) => ({ value, index })))('$value', ({ value, index }) => {
    // A third of the places for each value keeps this quick; every place still meets every third value.
    for (const { text, keyPath } of writable.filter((_, place) => place % 3 === index % 3)) {
      const after = edited(text, { keyPath, value });
      const old = entriesOf(text).find((entry) => entry.keyPath.join() === keyPath.join());
      expect(entriesOf(after).find((entry) => entry.keyPath.join() === keyPath.join())?.value, after).toEqual(value);
      expect(outside(after, keyPath), after).toEqual(outside(text, keyPath));
      expect((old?.raw ?? '').includes(removedText(text, after).trim()), after).toBe(true);
      expect(after.includes('\r\n'), after).toBe(text.includes('\r\n'));
    }
  });

  function entriesOf(text: string) {
    const file = readYaml(text, 'f');
    if (!file.ok) throw new Error(`${JSON.stringify(file.error)} in ${text}`);
    return file.value.entries;
  }

  /** Text and value of every single value that is neither above nor below `keyPath`. */
  function outside(text: string, keyPath: readonly string[]) {
    return entriesOf(text)
      .filter((entry) => entry.value === null || typeof entry.value !== 'object')
      .filter((entry) => keyPath.some((key, depth) => entry.keyPath[depth] !== key))
      .map((entry) => [entry.keyPath.join('.'), entry.value, entry.raw]);
  }

  /** What `after` no longer has between the longest common beginning and the longest common end. */
  function removedText(before: string, after: string): string {
    let start = 0;
    while (start < before.length && before[start] === after[start]) start += 1;
    let end = 0;
    while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
    return before.slice(start, before.length - end);
  }
});
