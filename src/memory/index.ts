export type { DeviceFacts } from './device.ts';
export * from './estimate.ts';
export * from './estimate-memory.ts';
