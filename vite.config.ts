import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

/**
 * commander asks for node:child_process at its top, to start programs as subcommands; snug has none, and loading it costs a start
 * more than all of commander.
 */
const commanderStartsNothing: Plugin = {
  name: 'commander-starts-nothing',
  transform(code, id) {
    if (!id.includes('/commander/lib/command.js')) return undefined;
    return code.replace("require('node:child_process')", '{}');
  },
};

/** One bundle for the command line; rooms that only some commands need become chunks of their own, loaded where used. */
export default defineConfig({
  plugins: [commanderStartsNothing],
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
  // The same code as modules: what is not used of it stays out.
  resolve: { alias: { yaml: fileURLToPath(new URL('node_modules/yaml/browser/index.js', import.meta.url)) } },
  // write-file-atomic names its temporary files after its own path, which a bundle does not have; the pid makes them differ.
  define: { __filename: JSON.stringify('snug') },
  ssr: { noExternal: true, target: 'node' },
});
