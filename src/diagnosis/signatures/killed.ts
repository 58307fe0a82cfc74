import type { Signature } from './signature.ts';

const killed = (id: string, pattern: RegExp, hints: readonly string[], more: Partial<Signature> = {}): Signature => ({
  id,
  role: 'killed',
  kind: 'unknown',
  resource: 'unknown',
  place: 'line',
  pattern,
  hints,
  candidates: ['host_ram', 'cgroup'],
  ...more,
});
const proven = (id: string, kind: 'host_ram' | 'cgroup', pattern: RegExp, hints: readonly string[]): Signature => ({
  id,
  role: 'cause',
  kind,
  resource: 'host_ram',
  place: 'anywhere',
  pattern,
  hints,
});

/** bash, dash and zsh, each in its own way. */
const SHELL_KILLED =
  /^Killed$|line \d+:\s+\d+ Killed\b|^\[?\d*\]?\s*\d+ Killed\s{2,}\S|^\S+: \d+: Killed$|^(?:zsh|bash|sh|fish): killed\s+\S/;

/** However a status is written, without the spaces that `kubectl describe` puts between. */
const STATUS_137: readonly string[] = [
  'Exit Code:',
  ...['exit', 'xitcode', 'xitCode', 'xit code', 'xit Code', 'tatus', 'urn code', 'turned'].flatMap((word) =>
    [' 137', ': 137', '=137', '": 137', ' = 137', ' code 137'].map((tail) => `${word}${tail}`),
  ),
];

/** The OOM killer at work: what proves it, and what only tells of a signal 9. */
export const killedByMemory: readonly Signature[] = [
  proven('kernel-cgroup-oom', 'cgroup', /Memory cgroup out of memory|constraint=CONSTRAINT_MEMCG/, [
    'Memory cgroup out of memory',
    'CONSTRAINT_MEMCG',
  ]),
  proven(
    'kernel-oom',
    'host_ram',
    /Out of memory: Kill(?:ed)? process \d+|constraint=CONSTRAINT_NONE|oom_reaper: reaped process|invoked oom-killer/,
    ['Out of memory: Kill', 'CONSTRAINT_NONE', 'oom_reaper', 'oom-killer'],
  ),
  proven(
    'slurm-oom',
    'cgroup',
    /Detected \d+ oom[-_]kill event|TERM_MEMLIMIT|mem \d+kb exceeded limit|gone over memory limit of|exceeded memory limit|oom-kill event\(s\) in |task \d+: Out Of Memory|Exceeded (?:job|step) memory limit|killed by the cgroup out-of-memory handler/,
    [
      'oom_kill event',
      'oom-kill event',
      'Out Of Memory',
      'memory limit',
      'TERM_MEMLIMIT',
      'exceeded limit',
      'out-of-memory handler',
    ],
  ),
  proven(
    'kubernetes-oom',
    'cgroup',
    /Container killed (?:due to|for exceeding) memory|ran out-of-memory and exited with a non-zero status|(?:[Rr]eason["']?\s*[:=]\s*["']?|^\s*|\s\d+\/\d+\s+)OOMKilled\b(?!["']?\s*[:=])|The node was low on resource: memory/,
    ['OOMKilled', 'low on resource: memory', 'Container killed', 'ran out-of-memory'],
  ),
  { ...proven('docker-oom', 'cgroup', /^\s*"?OOMKilled"?\s*[:=]\s*true\b/, ['OOMKilled']), place: 'field' },
  proven(
    'ray-oom',
    'host_ram',
    /Task was killed due to the node running low on memory|[1-9]\d* Workers \(tasks \/ actors\) killed due to memory pressure/,
    ['node running low on memory', 'killed due to memory pressure'],
  ),
  proven('earlyoom', 'host_ram', /earlyoom.*sending SIG(?:TERM|KILL) to process|systemd-oomd.*Killed /, [
    'earlyoom',
    'systemd-oomd',
  ]),
  killed(
    'rank-killed',
    /failed \(exitcode: -9\)|^\s*exitcode\s*: -9\b|Signal 9 \(SIGKILL\) received by PID|exits with return code = -9\b|terminated with code -9\b|terminated with signal SIGKILL|died with <Signals\.SIGKILL: 9>|exit status -9\b/,
    ['exitcode', 'return code', 'with code -9', 'exit status -9', 'SIGKILL'],
    // Somebody was left to tell: one process was picked, as the OOM killer does; a scheduler ends the whole job.
    { kind: 'host_ram', resource: 'host_ram', confidence: 'medium', candidates: ['cgroup', 'not_memory'] },
  ),
  killed('shell-killed', SHELL_KILLED, ['Killed', ': killed '], {
    skim: ['\nKilled', '\rKilled', ' Killed', ': killed '],
  }),
  killed(
    'status-137',
    /(?:status|exit|code|rc)\w*\s*(?:code)?["']?\s*[:=]?\s*137\b|return(?:ed)? (?:code )?137\b/i,
    ['137'],
    { candidates: ['cgroup', 'host_ram'], skim: STATUS_137 },
  ),
  killed('signal-sigkill', /signal[:=]? ?'?(?:SIGKILL|9\b)|received signal 9\b/i, ['SIGKILL', 'ignal', 'SIGNAL'], {
    skim: ['SIGKILL', 'SIGNAL: 9', 'signal 9', 'signal: 9', 'Signal 9', 'Signal: 9', 'signal=9'],
  }),
];

/** A process has gone, and the one that says so knows no more. */
export const goneWithoutAWord: readonly Signature[] = [
  {
    id: 'worker-gone',
    role: 'possible',
    kind: 'unknown',
    resource: 'unknown',
    place: 'anywhere',
    pattern:
      /kernel appears to have died|[Kk]ernel crashed while executing code|Kernel Restarting|worker died (?:or was killed )?(?:unexpectedly )?while executing|The actor (?:is dead because its worker process has died|died unexpectedly)/,
    hints: ['kernel appears', 'ernel crashed', 'Kernel Restarting', 'worker died', 'The actor '],
    confidence: 'low',
    candidates: ['host_ram', 'not_memory'],
  },
];

/** Worker processes of a data loader. */
export const dataLoader: readonly Signature[] = [
  {
    id: 'dataloader-killed',
    role: 'cause',
    kind: 'dataloader_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) is killed by signal: Killed/,
    hints: ['is killed by signal: Killed'],
    confidence: 'high',
    candidates: ['cgroup', 'host_ram'],
  },
  {
    id: 'dataloader-exited',
    role: 'possible',
    kind: 'dataloader_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) exited unexpectedly/,
    hints: ['exited unexpectedly'],
    confidence: 'low',
    candidates: ['shm', 'not_memory'],
  },
  {
    id: 'dataloader-crashed',
    role: 'other',
    kind: 'not_memory',
    resource: 'none',
    place: 'exception',
    pattern: /DataLoader worker \(pid\(?s?\)? ?[\d, ]+\) is killed by signal: (?!Killed|Bus error)\w/,
    hints: ['is killed by signal: '],
  },
];
