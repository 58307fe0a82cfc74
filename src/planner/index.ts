export { calibratedNeed, shortfallFactor } from './calibrate.ts';
export { stepPredictor } from './cost/index.ts';
export { LEVERS, type Lever, type LeverCost, type LeverNeed } from './levers/index.ts';
export * from './next-step.ts';
export { permits } from './permits.ts';
export * from './plan.ts';
export { planRun } from './plan-run.ts';
export { replan } from './replan.ts';
