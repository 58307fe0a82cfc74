import { DEFAULT_POLICY, planRun } from '../src/planner/index.ts';
import { CARDS, type Cell, cellName, MODELS, requestOf, STARTS } from '../test/planner/grid.ts';

const CELLS: readonly Cell[] = MODELS.flatMap((_, model) =>
  STARTS.flatMap((_start, start) => CARDS.map((_card, card) => ({ model, start, card }))),
);

/** `npm run bench:plans [-- EVERY]`: CPU time to plan one config, median of five, on each EVERY-th cell of the planner's grid. */
export function main([every = '13']: readonly string[]): number {
  const medians: number[] = [];
  for (const cell of CELLS.filter((_, index) => index % Number(every) === 0)) {
    let estimates = 0;
    let bounds = 0;
    let verdict = '';
    const times = Array.from({ length: 5 }, () => {
      const request = requestOf(cell, DEFAULT_POLICY.allow);
      estimates = 0;
      bounds = 0;
      const start = process.cpuUsage();
      verdict = planRun({
        ...request,
        estimate: (values) => {
          estimates += 1;
          return request.estimate(values);
        },
        leastBytes: (values) => {
          bounds += 1;
          return request.leastBytes!(values);
        },
      }).verdict;
      const { user, system } = process.cpuUsage(start);
      return (user + system) / 1000;
    }).sort((a, b) => a - b);
    medians.push(times[2]!);
    const figures = `${String(estimates).padStart(4)} estimates ${String(bounds).padStart(5)} bounds`;
    console.log(`${times[2]!.toFixed(0).padStart(5)} ms ${verdict.padEnd(8)}${figures}  ${cellName(cell)}`);
  }
  medians.sort((a, b) => a - b);
  const at = (share: number): string => `${medians[Math.floor(share * (medians.length - 1))]!.toFixed(0)} ms`;
  console.log(`${medians.length} configs: median ${at(0.5)}, p95 ${at(0.95)}, worst ${at(1)}`);
  return 0;
}
