import type { PlanValues } from '../spec/index.ts';
import { Latest } from './latest.ts';
import { findOptimizer } from './optimizers/index.ts';
import { type OptimizerCost, type OptimizerSettings, optimizerArguments } from './optimizers/optimizer.ts';
import { dtypeCode, Parameter, type ParameterGroup, type ParameterPlan } from './parameters.ts';

interface OptimizerValues {
  readonly optim: string;
  readonly optimArgs?: string | undefined;
  readonly optimTargetModules?: PlanValues['optimTargetModules'] | undefined;
}

type Question = OptimizerValues & { readonly inFp32: boolean };

const known = new WeakMap<ParameterPlan, Latest<Question, OptimizerCost>>();

/** What the optimizer costs over everything that a plan trains; `inFp32`: it steps fp32 copies of the weights. */
export function optimizerCost(
  plan: ParameterPlan,
  { optim, optimArgs, optimTargetModules }: OptimizerValues,
  inFp32: boolean,
): OptimizerCost {
  let latest = known.get(plan);
  if (!latest) {
    latest = new Latest();
    known.set(plan, latest);
  }
  return latest.get({ optim, optimArgs, optimTargetModules, inFp32 }, (question) => {
    const { groups } = plan.trained;
    return findOptimizer(optim)!.cost(inFp32 ? asFp32(groups) : groups, optimizerSettings(question));
  });
}

/** What the launch says about its optimizer beside its name. */
export const optimizerSettings = (values: OptimizerValues): OptimizerSettings => ({
  args: optimizerArguments(values.optimArgs),
  targetModules: values.optimTargetModules,
});

/** The same tensors in fp32. */
const asFp32 = (groups: readonly ParameterGroup[]): ParameterGroup[] =>
  groups.map(({ parameter, count, ...group }) => ({
    ...group,
    parameter: new Parameter(parameter.rows, parameter.columns, dtypeCode('fp32'), true),
    count,
  }));
