export type * from './ops/attention.ts';
export type * from './ops/description.ts';
export type * from './ops/experts.ts';
export * from './ops/layers.ts';
export type * from './ops/mixers.ts';
export type * from './ops/op.ts';
export * from './ops/pointwise.ts';
export type * from './ops/values.ts';
export * from './ops/visit-ops.ts';
