// Prints time and memory of `snug diagnose` on a log of 1 GB beside `grep -c memory` on the same, in turns, and on 200 logs at once.
import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const snug = resolve(here, '../bin/snug.js');
const BYTES = Number(process.argv[2] ?? 1e9);
const ROUNDS = 3;
const SECONDS = 5;
const MEGABYTES = 150;

const failing = [
  'Traceback (most recent call last):',
  '  File "/srv/train.py", line 88, in main',
  '    trainer.train()',
  '  File "/srv/lib/trainer.py", line 3307, in training_step',
  '    self.accelerator.backward(loss)',
  'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.18 GiB. GPU 0 has a total capacity of 23.55 GiB of which 611.50 MiB is free. Including non-PyTorch memory, this process has 22.94 GiB memory in use. Of the allocated memory 21.70 GiB is allocated by PyTorch, and 702.10 MiB is reserved by PyTorch but unallocated.',
  '',
].join('\n');

/** What a run of days prints: losses, a bar that is drawn over itself, a logger with the word that grep counts, warnings. */
function block(from) {
  const lines = [];
  for (let step = from; step < from + 5000; step++) {
    lines.push(
      `{'loss': ${(2 - step / 1e7).toFixed(4)}, 'grad_norm': 0.${step % 997}, 'learning_rate': 1.7e-05, 'epoch': ${(step / 9e4).toFixed(3)}}\n`,
    );
    lines.push(
      `2026-03-02 08:${String(Math.floor(step / 60) % 60).padStart(2, '0')}:${String(step % 60).padStart(2, '0')},114 | INFO | loop | step ${step} gpu memory 21.7 GiB host memory 40.1 GiB\n`,
    );
    lines.push(`\r ${step % 100}%|####      | ${step}/9000000 [51:02<55:10,  9.22s/it]`);
    if (step % 40 === 0) lines.push(`\nUserWarning: slow worker, Error budget ${step}\n`);
  }
  return lines.join('');
}

function writeLog(path, bytes) {
  const handle = openSync(path, 'w');
  for (let written = 0, step = 0; written < bytes; step += 5000) written += writeSync(handle, block(step));
  writeSync(handle, `\n${failing}`);
  closeSync(handle);
}

/** Seconds by the clock, CPU seconds where the child reports them, largest resident set in MB. */
function run(args) {
  const began = process.hrtime.bigint();
  const child = spawnSync(process.execPath, ['--import', join(here, 'report-cpu.mjs'), snug, ...args], {
    stdio: ['ignore', 'pipe', 'inherit', 'pipe'],
    maxBuffer: 2 ** 28,
    env: { ...process.env, NO_COLOR: '1' },
  });
  const [micros, kilobytes] = String(child.output[3]).trim().split(' ').map(Number);
  return {
    seconds: Number(process.hrtime.bigint() - began) / 1e9,
    cpu: micros / 1e6,
    megabytes: kilobytes / 1000,
    reports: String(child.stdout)
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line)),
  };
}

const folder = mkdtempSync(join(tmpdir(), 'snug-bench-'));
const log = join(folder, 'train.log');
writeLog(log, BYTES);
const grep = [];
const diagnose = [];
for (let round = 0; round < ROUNDS; round++) {
  const began = process.hrtime.bigint();
  spawnSync('grep', ['-c', 'memory', log]);
  grep.push(Number(process.hrtime.bigint() - began) / 1e9);
  diagnose.push(run(['diagnose', log, '--json']));
}
const best = (values) => Math.min(...values);
const [grepSeconds, seconds, cpu] = [
  best(grep),
  best(diagnose.map((one) => one.seconds)),
  best(diagnose.map((one) => one.cpu)),
];
const megabytes = Math.max(...diagnose.map((one) => one.megabytes));
const limit = Math.max(3 * grepSeconds, SECONDS);
console.log(`node ${process.version}, ${new Date().toISOString().slice(0, 10)}, best of ${ROUNDS} in turns`);
console.log(`log of ${(BYTES / 1e6).toFixed(0)} MB: grep -c memory ${grepSeconds.toFixed(2)} s`);
console.log(
  `snug diagnose: ${seconds.toFixed(2)} s, ${cpu.toFixed(2)} s of CPU, ${megabytes.toFixed(0)} MB resident (limits ${limit.toFixed(1)} s, ${MEGABYTES} MB)`,
);
console.log(
  `read as ${diagnose[0].reports[0].kind}, ${diagnose[0].reports[0].phase}, line ${diagnose[0].reports[0].evidence[0].line}`,
);

const many = Array.from({ length: 200 }, (_, index) => {
  const path = join(folder, `job-${String.fromCharCode(97 + (index % 26))}-${index}x.log`);
  writeFileSync(path, `${block(index * 100).slice(0, 40_000)}\n${index % 2 === 0 ? failing : 'KeyError: 3\n'}`);
  return path;
});
const all = run(['diagnose', ...many, '--json']);
const kinds = {};
for (const { kind } of all.reports) kinds[kind] = (kinds[kind] ?? 0) + 1;
console.log(`200 logs: ${all.seconds.toFixed(2)} s, ${all.megabytes.toFixed(0)} MB, ${JSON.stringify(kinds)}`);
rmSync(folder, { recursive: true });
if (seconds > limit || megabytes > MEGABYTES || all.reports.length !== 200) process.exitCode = 1;
