// Run after a build: starts snug in the ways people do, and keeps in dist/ what V8 has compiled of each file by then.
import { spawnSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import module from 'node:module';
import { fileURLToPath } from 'node:url';

const at = (path) => fileURLToPath(new URL(path, import.meta.url));
const config = at('../examples/pocket/snug.yaml');
const folder = at(`../dist/compiled-${process.version}-${process.arch}`);

/** A file keeps what the first of these has used of it. */
const COMMANDS = [
  ['check', config, '--gpu', '24GiB'],
  ['run', '--dry-run', config, '--gpu', '8GiB'],
  ['estimate', config, '--json'],
  ['diagnose', at('../README.md')],
];

function compile() {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder);
  for (const command of COMMANDS) {
    const { status, stderr } = spawnSync(
      process.execPath,
      ['--import', at('./keep-compiled.mjs'), at('../bin/snug.js'), ...command],
      { env: { ...process.env, SNUG_COMPILED: folder }, stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' },
    );
    if (status === null || status >= 70) throw new Error(`snug ${command.join(' ')} failed:\n${stderr}`);
  }
}

// Where Node keeps compiled code itself, bin/snug.js leaves it to Node.
if (!module.enableCompileCache) compile();
