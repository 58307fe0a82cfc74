// Bundles a TypeScript bench module as the command line is bundled, and runs it: node bench/run.mjs accuracy.ts [arguments]
import { mkdtempSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { build } from 'vite';

const [name = 'accuracy.ts', ...argv] = process.argv.slice(2);
const folder = mkdtempSync(join(import.meta.dirname, '.bundle-'));
try {
  await build({
    configFile: false,
    logLevel: 'error',
    build: {
      ssr: resolve(import.meta.dirname, name),
      outDir: folder,
      target: 'node20',
      rollupOptions: { output: { entryFileNames: 'bench.mjs' } },
    },
    define: { __filename: JSON.stringify('bench'), 'import.meta.dirname': JSON.stringify(import.meta.dirname) },
    ssr: { noExternal: true, target: 'node' },
  });
  const module = await import(pathToFileURL(join(folder, 'bench.mjs')).href);
  process.exitCode = (await module.main(argv)) ?? 0;
} finally {
  rmSync(folder, { recursive: true });
}
