#!/usr/bin/env node
/**
 * npm run demo: examples/pocket in a temporary folder, without a GPU, then a check of every claim against what the trainer itself
 * wrote down. Exit code 1 when one of them does not hold.
 */
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { styleText } from 'node:util';

const ROOT = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const GPU = '11GiB';
/** What examples/pocket/snug.yaml asks for. */
const ASKED = { microBatch: 16, globalBatch: 32, steps: 40 };

const read = (path) => readFileSync(path, 'utf8');
const numberAfter = (text, label) => {
  const match = new RegExp(`${label} (\\d+)`).exec(text);
  return match ? Number(match[1]) : undefined;
};

/** One attempt as the trainer reported it. */
function readAttempt(folder) {
  const log = read(join(folder, 'output.log'));
  return {
    microBatch: numberAfter(log, 'Instantaneous batch size per device ='),
    globalBatch: numberAfter(log, 'accumulation\\) ='),
    resumedAt: numberAfter(log, 'Continuing training from global step'),
    outOfMemory: log.includes('torch.OutOfMemoryError: CUDA out of memory'),
  };
}

function readAttempts(folder) {
  const runs = join(folder, '.snug', 'runs');
  const [run] = existsSync(runs) ? readdirSync(runs) : [];
  if (run === undefined) return [];
  const attempts = join(runs, run, 'attempts');
  return readdirSync(attempts)
    .sort((a, b) => Number(a) - Number(b))
    .map((name) => readAttempt(join(attempts, name)));
}

function claims(folder, exitCode, configBefore) {
  const attempts = readAttempts(folder);
  const [first, last] = [attempts[0], attempts.at(-1)];
  const resultsPath = join(folder, 'runs', 'pocket', 'train_results.json');
  const results = existsSync(resultsPath) ? JSON.parse(read(resultsPath)) : undefined;
  return [
    ['the run ended well', exitCode === 0, `exit code ${exitCode}`],
    [
      'the preflight started with fewer rows than the config asked for',
      first?.microBatch < ASKED.microBatch,
      `micro batch ${ASKED.microBatch} -> ${first?.microBatch}`,
    ],
    [
      'it then ran out of memory, after a checkpoint',
      first?.outOfMemory === true && last?.resumedAt > 0,
      `${attempts.length} attempts, resumed at step ${last?.resumedAt}`,
    ],
    [
      'the retry took a smaller micro batch',
      last?.microBatch < first?.microBatch,
      `micro batch ${first?.microBatch} -> ${last?.microBatch}`,
    ],
    [
      'the global batch stayed',
      attempts.length > 1 && attempts.every((attempt) => attempt.globalBatch === ASKED.globalBatch),
      [ASKED.globalBatch, ...attempts.map((attempt) => attempt.globalBatch)].join(' -> '),
    ],
    [
      'all steps were trained, each on a full global batch',
      results?.global_step === ASKED.steps && results?.samples_seen === ASKED.steps * ASKED.globalBatch,
      `${results?.global_step} of ${ASKED.steps} steps, ${results?.samples_seen} samples`,
    ],
    ['snug.yaml is as it was', read(join(folder, 'snug.yaml')) === configBefore, 'compared byte by byte'],
  ];
}

function main() {
  if (spawnSync('python3', ['--version']).status !== 0) {
    process.stderr.write('demo: no python3 on PATH; the demo trainer needs one (its standard library is enough)\n');
    return 1;
  }
  if (!existsSync(join(ROOT, 'dist', 'snug.js'))) {
    const built = spawnSync('npm', ['run', 'build'], {
      cwd: ROOT,
      stdio: 'inherit',
      shell: process.platform === 'win32',
    });
    if (built.status !== 0) return 1;
  }
  const folder = mkdtempSync(join(tmpdir(), 'snug-demo-'));
  cpSync(join(ROOT, 'examples', 'pocket'), folder, { recursive: true });
  const before = read(join(folder, 'snug.yaml'));
  process.stderr.write(`$ cd ${folder}\n$ snug run --gpu ${GPU} snug.yaml\n\n`);
  const run = spawnSync(process.execPath, [join(ROOT, 'bin', 'snug.js'), 'run', '--gpu', GPU, 'snug.yaml'], {
    cwd: folder,
    stdio: 'inherit',
  });
  const checked = claims(folder, run.status ?? run.signal, before);
  process.stdout.write('\nchecked, from what the trainer wrote:\n');
  for (const [claim, holds, shown] of checked) {
    const mark = holds ? styleText('green', 'yes') : styleText('red', 'NO ');
    process.stdout.write(`  ${mark}  ${claim}: ${shown}\n`);
  }
  process.stdout.write(`\nall of it is in ${folder}\n`);
  return checked.every(([, holds]) => holds) ? 0 : 1;
}

process.exitCode = main();
