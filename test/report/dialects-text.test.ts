import { expect, it } from 'vitest';
import type { DialectSupport } from '../../src/dialects/index.ts';
import { dialectsJson, renderDialect, renderDialects } from '../../src/report/index.ts';

const plain = { colour: false, width: 60, unicode: false };

const otter: DialectSupport = {
  id: 'otter',
  kind: 'trainer',
  title: 'Otter tune',
  docs: 'https://otter.example/options',
  fileSign: 'den with fish',
  commands: ['otter tune --fish 3', 'otter tune den.yaml'],
  readOnly: undefined,
  settings: [
    { setting: 'dtype', write: 'the den decides the dtype of everything that swims in it' },
    { setting: 'maxLength', write: true },
    { setting: 'optim', write: undefined },
  ],
};
const seal: DialectSupport = {
  ...otter,
  id: 'seal',
  fileSign: undefined,
  commands: [],
  readOnly: 'its config is a program',
  settings: [{ setting: 'optim', write: undefined }],
};
const ice: DialectSupport = { ...seal, id: 'ice', kind: 'wrapper', settings: [] };

it('lists what is read and written, wrappers at the end', () => {
  expect(renderDialects([otter, seal, ice], plain)).toBe(`otter  trainer, Otter tune
  $ otter tune --fish 3
  a file alone: den with fish
  read and written: max_length
  read: dtype, optim

seal  trainer, Otter tune
  nothing is written: its config is a program
  read: optim

wrappers  looked through, and kept as they are
  ice

snug dialects NAME shows each setting, and why one is not
written`);
});

it('gives one dialect a line for each setting, with the reason why it is not written', () => {
  expect(renderDialect(otter, plain)).toBe(`otter  Otter tune
  https://otter.example/options
  $ otter tune --fish 3
  $ otter tune den.yaml
  a file alone: den with fish

dtype                         read; not written: the den
                              decides the dtype of
                              everything that swims in it
max_length                    read and written
optim                         read`);
  expect(renderDialect(seal, plain)).toMatch(/read; not written: its config\s+is a program/);
});

it('is JSON with the names of the other reports', () => {
  expect(dialectsJson([otter]).dialects[0]).toMatchObject({
    id: 'otter',
    kind: 'trainer',
    file_sign: 'den with fish',
    read_only: null,
    settings: [
      { setting: 'dtype', read: true, written: false, reason: otter.settings[0]!.write },
      { setting: 'max_length', read: true, written: true, reason: null },
      { setting: 'optim', read: true, written: false, reason: null },
    ],
  });
});
