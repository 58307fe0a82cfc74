export * from './evidence.ts';
export * from './failure.ts';
