import { LEVERS, type PlanRequest } from '../../src/planner/index.ts';
import { priceMove } from '../../src/planner/levers/index.ts';
import { LEVER_CLASSES, type PlanValues } from '../../src/spec/index.ts';

export interface Choice {
  readonly values: PlanValues;
  readonly levers: readonly string[];
  /** Class, degree, speed, changes, mildness: smaller is better, in this order. */
  readonly rank: readonly number[];
}

/** Every plan there is, by plain enumeration over what the levers offer themselves (of their needs only packages are asked for). */
export function everyPlan({ values, policy, surroundings, stepSeconds }: PlanRequest): readonly Choice[] {
  let plans: Choice[] = [{ values, levers: [], rank: [0, 0, 1, 0, 0] }];
  const usable = LEVERS.filter(
    (lever) =>
      policy.allow.includes(lever.class) &&
      lever.needs.every((need) => need.kind !== 'package' || surroundings.packages[need.name]),
  );
  for (const lever of usable) {
    plans = plans.flatMap((plan) => {
      const options = lever.options(plan.values, surroundings);
      if (typeof options === 'string') return [plan];
      const [harm, degree, speed, changes, mildness] = plan.rank as [number, number, number, number, number];
      const pulled = options.map((set, index): Choice => {
        const next = { ...plan.values, ...set };
        const altering = { free: 0, exact: 0, near: 1, qlora: 1, method: index + 1, data: index + 1 }[lever.class];
        return {
          values: next,
          levers: [...plan.levers, lever.id],
          rank: [
            Math.max(harm, LEVER_CLASSES.indexOf(lever.class)),
            degree + altering,
            speed * priceMove(lever, plan.values, next, stepSeconds).factor,
            changes + 1,
            mildness + index + 1,
          ],
        };
      });
      return [plan, ...pulled];
    });
  }
  return plans;
}

/** Speeds are compared in percent of the step time. */
export function compareRanks(a: readonly number[], b: readonly number[]): number {
  const fine = (rank: readonly number[]) => rank.map((value, index) => (index === 2 ? Math.round(value * 100) : value));
  const other = fine(b);
  return (
    fine(a)
      .map((value, index) => value - other[index]!)
      .find((gap) => gap !== 0) ?? 0
  );
}
