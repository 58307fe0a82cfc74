// Output through snug beside output through `cat`: speed, memory over the whole flood, and what a quiet run costs.
//   node bench/passthrough.mjs [GB] [SECONDS]     default 5 (10^9 bytes) and 20 (of a quiet run)
// Wall time counts; CPU seconds stand beside it, for a machine that has other things to do.
import { spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const SNUG = resolve(here, '../bin/snug.js');
const [gigabytes = 5, quietSeconds = 20] = process.argv.slice(2).map(Number);
const LIMITS = { rssMb: 120, mbPerSecond: 300, ofCat: 0.85, quietCore: 0.01 };
/** Until a run has started and its memory been looked at. */
const SETTLED_MS = 4000;

const cwd = mkdtempSync(join(tmpdir(), 'snug-bench-'));
const line = `{'loss': 1.8421, 'grad_norm': 0.7712, 'learning_rate': 4.1e-05, 'epoch': 0.31}`;
const bytes = Math.round(gigabytes * 1e9);
// `yes` is the fastest writer there is; the trainer of a flood.
const flood = ['sh', '-c', `yes "${line}" | head -c ${bytes}`];

const read = (path) => {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return undefined;
  }
};

/** Highest resident set of a program since it was started, MB. */
const peakOf = (pid) => Number(/^VmHWM:\s+(\d+) kB/m.exec(read(`/proc/${pid}/status`) ?? '')?.[1] ?? 0) * 1.024e-3;

const statOf = (pid) => {
  const stat = read(`/proc/${pid}/stat`);
  return stat
    ?.slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
};
/** CPU seconds of children that were waited for. */
const reapedOf = (pid) => ((statOf(pid)?.[13] ?? 0) + (statOf(pid)?.[14] ?? 0)) / 100;

/** CPU seconds of all threads so far, to the nanosecond where the kernel counts them; undefined: it has ended. */
function cpuOf(pid) {
  try {
    const threads = readdirSync(`/proc/${pid}/task`).map((id) => read(`/proc/${pid}/task/${id}/schedstat`));
    if (threads.every(Boolean)) return threads.reduce((sum, text) => sum + Number(text.split(' ')[0]) / 1e9, 0);
  } catch {
    return undefined;
  }
  const fields = statOf(pid);
  return fields && (fields[11] + fields[12]) / 100;
}

const childrenOf = (pid) => readdirSync('/proc').filter((name) => /^\d+$/.test(name) && statOf(name)?.[1] === pid);

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
      // The last answer, not the highest: at first the process is still a copy of this one.
      peak = peakOf(child.pid) || peak;
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

/** Part of a core that snug and everything it starts for itself use beside a program that sleeps. */
async function quiet() {
  const seconds = quietSeconds + SETTLED_MS / 1000 + 2;
  const child = spawn(process.execPath, [SNUG, 'run', '-q', '--', 'sleep', String(seconds)], { cwd, stdio: 'ignore' });
  const ended = new Promise((done) => child.on('close', done));
  await new Promise((done) => setTimeout(done, SETTLED_MS));
  const helpers = childrenOf(child.pid);
  const used = () => [child.pid, ...helpers].reduce((sum, pid) => sum + (cpuOf(pid) ?? 0), reapedOf(child.pid));
  const before = used();
  await new Promise((done) => setTimeout(done, quietSeconds * 1000));
  const share = (used() - before) / quietSeconds;
  await ended;
  return share;
}

const cat = await drain(['sh', '-c', `yes "${line}" | head -c ${bytes} | { cat; times >&2; }`]);
const snug = await drain([process.execPath, SNUG, 'run', '-q', '--log-limit', '64MiB', '--', ...flood]);
const share = await quiet();
rmSync(cwd, { recursive: true, force: true });

const speed = (run) => bytes / 1e6 / run.seconds;
const wanted = Math.min(LIMITS.mbPerSecond, LIMITS.ofCat * speed(cat));
const verdict = (good) => (good ? 'ok' : 'MISSED');
const isFast = speed(snug) >= wanted;
const isSmall = snug.peak <= LIMITS.rssMb;
const isQuiet = share <= LIMITS.quietCore;
console.log(`${gigabytes} GB of output, watched, kept and passed on`);
console.log(`  through cat   ${speed(cat).toFixed(0)} MB/s, ${cpuOfChildren(cat.said).toFixed(2)} s of CPU`);
console.log(
  `  through snug  ${speed(snug).toFixed(0)} MB/s (${(speed(snug) / speed(cat)).toFixed(2)} of cat, start included), ${snug.cpu.toFixed(2)} s of CPU; at least ${wanted.toFixed(0)}: ${verdict(isFast)}`,
);
console.log(`  highest RSS   ${snug.peak.toFixed(0)} MB; at most ${LIMITS.rssMb}: ${verdict(isSmall)}`);
console.log(
  `  quiet run     ${(100 * share).toFixed(2)} % of a core over ${quietSeconds} s, its helpers included; at most ${100 * LIMITS.quietCore}: ${verdict(isQuiet)}`,
);
process.exitCode = isFast && isSmall && isQuiet ? 0 : 1;
