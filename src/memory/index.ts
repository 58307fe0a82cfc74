export type { DeviceFacts } from './device.ts';
export * from './estimate.ts';
export { estimateMemory, leastDeviceBytes } from './estimate-memory.ts';
export * from './explain/index.ts';
export { readyBatchBytes } from './host-ram/dataloader.ts';
export { isBefore } from './versions.ts';
