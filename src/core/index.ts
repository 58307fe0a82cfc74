export * from './bytes.ts';
export * from './diagnostic.ts';
export * from './dtypes.ts';
export * from './ports.ts';
export * from './result.ts';
