import { expect, it } from 'vitest';
import { countNewlines } from '../../src/diagnosis/index.ts';
import { createHeldEnd } from '../../src/supervisor/held-end.ts';

const ENOUGH = 32 * 1024;

/** Holds `text`, given in chunks of `size`. */
function hold(text: string, size: number) {
  const held = createHeldEnd();
  const bytes = Buffer.from(text);
  const told: { lines: number; place: string }[] = [];
  for (let from = 0; from < bytes.length; from += size) {
    const chunk = Buffer.from(bytes.subarray(from, from + size));
    held.add(chunk, countNewlines(chunk, 0, chunk.length));
    chunk.fill(0);
    const letGo = held.takeLetGo();
    if (letGo) told.push(letGo);
  }
  return { kept: held.bytes().toString(), told };
}

const linesIn = (text: string): number => text.split('\n').length - 1;

it.each([1, 100, 5000, 40_000, 65_536, 400_000])(
  'keeps whole lines of the end, and counts the others (chunks of %i)',
  (size) => {
    const text = Array.from({ length: 9000 }, (_, line) => `row ${line} ${'.'.repeat(line % 60)}\n`).join('');
    const { kept, told } = hold(text, size);
    expect(text.endsWith(`\n${kept}`)).toBe(true);
    expect(kept.length).toBeGreaterThan(ENOUGH - 100);
    expect(kept.length).toBeLessThan(5 * ENOUGH);
    expect(told.every(({ place }) => place === 'line')).toBe(true);
    expect(told.reduce((sum, { lines }) => sum + lines, 0)).toBe(linesIn(text) - linesIn(kept));
  },
);

it.each([
  ['a bar that is drawn anew', `begin\n${' 7%|#   | 7/100\r'.repeat(20_000)}`, 'refresh', ' 7%|#   | 7/100\r'],
  ['a line without an end', `begin\n${'Q'.repeat(320_000)}`, 'inside', 'QQQ'],
])('says that it ends inside a line: %s', (_, text, place, start) => {
  const { kept, told } = hold(text, 20_000);
  expect(kept.startsWith(start)).toBe(true);
  expect(new Set(told.map((one) => one.place))).toEqual(new Set([place]));
  expect(told.reduce((sum, { lines }) => sum + lines, 0)).toBe(1);
});

it('lets go of nothing that is small', () => {
  const { kept, told } = hold('one\ntwo\nthr', 4);
  expect(kept).toBe('one\ntwo\nthr');
  expect(told).toEqual([]);
});
