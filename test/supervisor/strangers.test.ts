import { expect, it } from 'vitest';
import { strangersAmong } from '../../src/supervisor/strangers.ts';

const stat = (pid: number, parent: number) => ({ pid, parent, session: pid, state: 'S', startTicks: pid, cpuTicks: 0 });

/** Pids found to be strangers among processes written as `pid: parent`. */
function strangers(
  parents: Readonly<Record<number, number>>,
  ours: readonly number[] = [],
  known: readonly number[] = [],
) {
  const all = Object.entries(parents).map(([pid, parent]) => stat(Number(pid), parent));
  const reached = new Set(all.filter(({ pid }) => ours.includes(pid)));
  return strangersAmong(all, reached, new Map(known.map((pid) => [pid, 1]))).map(({ pid }) => pid);
}

it('whoever descends from the first process alone is a stranger', () => {
  expect(strangers({ 1: 0, 7: 1, 20: 7, 31: 20 })).toEqual([1, 7, 20, 31]);
});

it('so is whoever descends from a stranger that was not looked at again', () => {
  expect(strangers({ 20: 7, 31: 20 }, [], [1, 7])).toEqual([20, 31]);
});

it('ours are none', () => {
  expect(strangers({ 1: 0, 7: 1, 20: 7, 31: 20 }, [20, 31])).toEqual([1, 7]);
});

it('whose parent was not in the list may be ours, and so may its children', () => {
  expect(strangers({ 1: 0, 31: 20, 44: 31, 45: 1 })).toEqual([1, 45]);
});

it('numbers that were given away in between make no endless circle', () => {
  expect(strangers({ 1: 0, 31: 44, 44: 31 })).toEqual([1]);
});
