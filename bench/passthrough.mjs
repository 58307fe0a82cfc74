// Output through snug beside output through `cat`: speed, memory over the whole flood, and what a quiet run costs.
//   node bench/passthrough.mjs [GIB]     default 1
// Wall time counts; CPU seconds stand beside it, for a machine that has other things to do.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const SNUG = resolve(here, '../bin/snug.js');
const gib = Number(process.argv[2] ?? 1);
const QUIET_SECONDS = 20;
const LIMITS = { rssMib: 120, megabytesPerSecond: 300, ofCat: 0.85, quietCore: 0.01 };

const cwd = mkdtempSync(join(tmpdir(), 'snug-bench-'));
const line = `{'loss': 1.8421, 'grad_norm': 0.7712, 'learning_rate': 4.1e-05, 'epoch': 0.31}`;
const bytes = Math.round(gib * 2 ** 30);
// `yes` is the fastest writer there is; the trainer of a flood.
const flood = ['sh', '-c', `yes "${line}" | head -c ${bytes}`];

/** Highest resident set of a process, MiB. */
function peakOf(pid) {
  const path = `/proc/${pid}/status`;
  if (!existsSync(path)) return 0;
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(readFileSync(path, 'latin1'))?.[1] ?? 0) / 1024;
}

/** CPU seconds so far, children that were waited for not counted; undefined: it has ended. */
function cpuOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (Number(fields[11]) + Number(fields[12])) / 100;
  } catch {
    return undefined;
  }
}

/** What a shell's `times` says of its children, seconds. */
function cpuOfChildren(text) {
  const [, minutes, seconds, systemMinutes, systemSeconds] =
    /\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\s*$/.exec(text)?.map(Number) ?? [];
  return 60 * (minutes + systemMinutes) + seconds + systemSeconds;
}

/** Runs a program whose output goes through `cat > /dev/null`-like reading: a pipe that is emptied here. */
function drain(argv) {
  return new Promise((done, fail) => {
    const began = performance.now();
    const child = spawn(argv[0], argv.slice(1), { cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let seen = 0;
    let peak = 0;
    let cpu = 0;
    let said = '';
    const timer = setInterval(() => {
      peak = Math.max(peak, peakOf(child.pid));
      cpu = cpuOf(child.pid) ?? cpu;
    }, 50);
    child.stdout.on('data', (chunk) => {
      seen += chunk.length;
    });
    child.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-4096);
    });
    child.on('error', fail);
    child.on('close', (code) => {
      clearInterval(timer);
      if (code !== 0 || seen < bytes)
        return fail(new Error(`${argv[0]} ended with ${code} after ${seen} bytes: ${said}`));
      done({ seconds: (performance.now() - began) / 1000, peak, cpu, said });
    });
  });
}

async function quiet() {
  const child = spawn(process.execPath, [SNUG, 'run', '-q', '--', 'sleep', String(QUIET_SECONDS + 6)], {
    cwd,
    stdio: 'ignore',
  });
  await new Promise((done) => setTimeout(done, 4000));
  const before = cpuOf(child.pid);
  await new Promise((done) => setTimeout(done, QUIET_SECONDS * 1000));
  const used = cpuOf(child.pid) - before;
  await new Promise((done) => child.on('close', done));
  return used / QUIET_SECONDS;
}

const cat = await drain(['sh', '-c', `yes "${line}" | head -c ${bytes} | { cat; times >&2; }`]);
const snug = await drain([process.execPath, SNUG, 'run', '-q', '--log-limit', '64MiB', '--', ...flood]);
const share = await quiet();
rmSync(cwd, { recursive: true, force: true });

const speed = (run) => bytes / 1e6 / run.seconds;
const wanted = Math.min(LIMITS.megabytesPerSecond, LIMITS.ofCat * speed(cat));
const verdict = (good) => (good ? 'ok' : 'MISSED');
console.log(`${gib} GiB of output, watched and kept`);
console.log(`  through cat   ${speed(cat).toFixed(0)} MB/s, ${cpuOfChildren(cat.said).toFixed(2)} s of CPU`);
console.log(
  `  through snug  ${speed(snug).toFixed(0)} MB/s, ${snug.cpu.toFixed(2)} s of CPU (at least ${wanted.toFixed(0)} MB/s): ${verdict(speed(snug) >= wanted)}`,
);
console.log(
  `  highest RSS   ${snug.peak.toFixed(0)} MiB (at most ${LIMITS.rssMib}): ${verdict(snug.peak <= LIMITS.rssMib)}`,
);
console.log(
  `  quiet run     ${(100 * share).toFixed(2)} % of a core (at most 1): ${verdict(share <= LIMITS.quietCore)}`,
);
process.exitCode = speed(snug) >= wanted && snug.peak <= LIMITS.rssMib && share <= LIMITS.quietCore ? 0 : 1;
