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

/** CommonJS, which Node can start from compiled code (bin/snug.js). */
const markedCommonJs: Plugin = {
  name: 'marked-common-js',
  generateBundle() {
    this.emitFile({ type: 'asset', fileName: 'package.json', source: '{ "type": "commonjs" }\n' });
  },
};

/** One bundle for the command line; rooms that only some commands need become chunks of their own, loaded where used. */
export default defineConfig({
  plugins: [commanderStartsNothing, markedCommonJs],
  build: {
    ssr: true,
    outDir: 'dist',
    target: 'node20',
    minify: true,
    emptyOutDir: true,
    rollupOptions: {
      // The watcher is a program of its own beside snug.
      input: { snug: 'src/cli/main.ts', watcher: 'src/supervisor/watcher/main.ts' },
      output: {
        format: 'cjs',
        dynamicImportInCjs: false,
        entryFileNames: '[name].js',
        chunkFileNames: '[name]-[hash].js',
      },
    },
  },
  // The same code as modules: what is not used of it stays out.
  resolve: { alias: { yaml: fileURLToPath(new URL('node_modules/yaml/browser/index.js', import.meta.url)) } },
  ssr: { noExternal: true, target: 'node' },
});
