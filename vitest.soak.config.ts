import { defineConfig } from 'vitest/config';

/** The long tests: everything the quick ones sample. */
export default defineConfig({
  test: { include: ['test/soak/**/*.test.ts'], testTimeout: 20 * 60_000, hookTimeout: 20 * 60_000 },
});
