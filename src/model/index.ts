export * from './describe-model.ts';
export * from './facts.ts';
export * from './located.ts';
export * from './ops.ts';
