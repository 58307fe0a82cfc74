import type { StepInput, StepResult } from '../walk/step.ts';
import { loadShards, loadWhole } from './load.ts';
import { type AllocatorSetting, playingOf } from './of-step.ts';
import { simulateReserved } from './simulate.ts';

/** What `reservedByStep` draws together played one by one: every allocation of every layer. Slow, for comparisons. */
export function simulatedReserve(input: StepInput, step: StepResult, setting: AllocatorSetting): number | undefined {
  if (step.script.length === 0) return undefined;
  const { shards, plan } = input;
  const { loads, ...playing } = playingOf(input, step, setting);
  return simulateReserved({
    load: (allocator) => {
      if (loads === 'shards') loadShards(allocator, input, shards!);
      else if (loads === 'whole') loadWhole(allocator, plan);
    },
    ...playing,
    steps: 2,
  });
}
