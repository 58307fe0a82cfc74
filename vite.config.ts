import { defineConfig } from 'vite';

/** One bundle for the command line; rooms that only some commands need become chunks of their own, loaded where used. */
export default defineConfig({
  build: {
    ssr: true,
    outDir: 'dist',
    target: 'node20',
    minify: true,
    emptyOutDir: true,
    rollupOptions: {
      // The watcher is a program of its own beside snug.
      input: { snug: 'src/cli/main.ts', watcher: 'src/supervisor/watcher/main.ts' },
      output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' },
    },
  },
  // write-file-atomic names its temporary files after its own path, which a bundle does not have; the pid makes them differ.
  define: { __filename: JSON.stringify('snug') },
  ssr: { noExternal: true, target: 'node' },
});
