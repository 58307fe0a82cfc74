// Runs a TypeScript bench module: node bench/run.mjs accuracy.ts [arguments]
import { resolve } from 'node:path';
import { createServer } from 'vite';

const [name = 'accuracy.ts', ...argv] = process.argv.slice(2);
const server = await createServer({
  configFile: false,
  logLevel: 'error',
  server: { middlewareMode: true, hmr: false, ws: false, watch: null },
  optimizeDeps: { noDiscovery: true },
});
try {
  const module = await server.ssrLoadModule(resolve(import.meta.dirname, name));
  process.exitCode = (await module.main(argv)) ?? 0;
} finally {
  await server.close();
}
