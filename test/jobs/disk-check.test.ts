import { expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import type { Hardware } from '../../src/hardware/index.ts';
import { checkpointBytes, diskWarnings } from '../../src/jobs/disk-check.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { requestOf } from '../planner/grid.ts';

const { values, estimate } = requestOf({ model: 2, start: 1, card: 6 }, undefined);
const on = (changed: Partial<PlanValues> = {}) => {
  const at = { ...values, ...changed };
  const answer = estimate(at);
  if (!answer.ok) throw new Error(JSON.stringify(answer.error));
  return [at, answer.value] as const;
};
const machine = (freeGib: number, source: Hardware['source'] = 'nvidia-smi'): Hardware => ({
  gpus: [],
  source,
  notes: [],
  host: undefined,
  sharedMemory: undefined,
  disk: { freeBytes: freeGib * GiB, totalBytes: 900 * GiB },
});

it('counts weights and optimizer states of a full fine-tune', () => {
  const [at, answer] = on();
  expect(checkpointBytes(at, answer)).toBe(answer.params.total * 2 + answer.vram.terms.optimizerStates);
  expect(answer.vram.terms.optimizerStates).toBeGreaterThan(0);
});

it('holds what is kept and the one being written against the free disk', () => {
  const [at, answer] = on({ saveTotalLimit: 3 });
  const one = checkpointBytes(at, answer) / GiB;
  expect(diskWarnings(machine(4 * one + 1), at, answer)).toEqual([]);
  const [found] = diskWarnings(machine(4 * one - 0.5), at, answer);
  expect(found).toMatchObject({ code: 'disk-short', severity: 'warning' });
  expect(found!.notes).toContain('save_total_limit 3 keeps 3, and one more while it is written');
});

it('says that nothing limits them, and nothing of a machine that is only planned', () => {
  const [at, answer] = on({ saveTotalLimit: null });
  expect(diskWarnings(machine(1), at, answer)[0]!.notes).toContain(
    'save_total_limit is not set, so every one of them is kept',
  );
  expect(diskWarnings(machine(1, 'planned'), at, answer)).toEqual([]);
});
