export * from './change.ts';
export * from './global-batch.ts';
export * from './origin.ts';
export * from './plan-values.ts';
export * from './training-spec.ts';
