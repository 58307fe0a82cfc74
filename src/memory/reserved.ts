import { MiB } from '../core/index.ts';

/** What the caching allocator reserves for an allocated peak: whole segments. */
export const reservedFrom = (allocatedBytes: number): number => {
  const segment = 20 * MiB;
  return Math.ceil((allocatedBytes * 1.02) / segment) * segment;
};
