import { defineConfig } from 'vitest/config';

/** The tests that start real trainers: one after the other, with time for PyTorch to load. `npx vitest run --config test/e2e/vitest.config.ts` */
export default defineConfig({
  test: {
    include: ['test/e2e/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 1_200_000,
  },
});
