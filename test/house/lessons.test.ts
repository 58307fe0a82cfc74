import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';

const ROOT = join(import.meta.dirname, '..', '..');
const text = readFileSync(join(ROOT, 'docs', 'lessons.md'), 'utf8');
const named = [...text.matchAll(/`(test\/[^`]+)`(?: "([^"]+)")?/g)].map(([, path, words]) => ({ path: path!, words }));

it('every test that holds a lesson is there under its name', () => {
  const missing = named.filter(({ path, words }) => {
    const file = join(ROOT, path);
    return !existsSync(file) || (words !== undefined && !readFileSync(file, 'utf8').includes(words));
  });
  expect(missing).toEqual([]);
  expect(named.length).toBeGreaterThan(55);
});

it('every lesson has one line, in order', () => {
  const numbers = [...text.matchAll(/^\| (\d+)(?:, (\d+))? \|/gm)].flatMap(([, one, other]) =>
    other === undefined ? [Number(one)] : [Number(one), Number(other)],
  );
  expect(numbers).toEqual(Array.from({ length: 55 }, (_, at) => at + 1));
});
