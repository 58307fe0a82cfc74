// Prints the CPU time of `snug check` on a local config beside `node -e 0`, taken in turns in one run.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const ROUNDS = 21;
const WARM_UP = 3;
const LIMIT = 3;

/** CPU milliseconds of one process, its start-up included. */
function cpuOf(args, cwd) {
  const child = spawnSync(process.execPath, ['--import', join(here, 'report-cpu.mjs'), ...args], {
    cwd,
    stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
    env: { ...process.env, NO_COLOR: '1' },
  });
  const micros = Number(String(child.output[3]).split(' ')[0]);
  if (!(micros > 0) || child.status === null || child.status >= 70)
    throw new Error(`${args.join(' ')} failed: ${child.output[2]}`);
  return { millis: micros / 1000, status: child.status };
}

const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];

const config = resolve(here, '../examples/pocket/snug.yaml');
const cwd = mkdtempSync(join(tmpdir(), 'snug-bench-'));
const node = [];
const check = [];
let status;
for (let round = 0; round < ROUNDS + WARM_UP; round++) {
  const bare = cpuOf(['-e', '0'], cwd);
  const snug = cpuOf([resolve(here, '../bin/snug.js'), 'check', config, '--gpu', '24GiB'], cwd);
  if (round < WARM_UP) continue;
  node.push(bare.millis);
  check.push(snug.millis);
  status = snug.status;
}
rmSync(cwd, { recursive: true });
const ratio = median(check) / median(node);
console.log(
  `node ${process.version}, ${new Date().toISOString().slice(0, 10)}, median of ${ROUNDS} in turns, CPU time`,
);
console.log(`node -e 0                        ${median(node).toFixed(1)} ms`);
console.log(`snug check examples/pocket       ${median(check).toFixed(1)} ms   exit ${status}`);
console.log(`ratio ${ratio.toFixed(2)} (limit ${LIMIT})`);
if (ratio > LIMIT) process.exitCode = 1;
