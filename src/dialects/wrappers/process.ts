import { wrapper } from './wrapper.ts';

/** Wrappers of one process: they change how it is scheduled, timed or attached, and nothing that is trained. */

const COREUTILS = 'https://www.gnu.org/software/coreutils/manual/coreutils.html';

export const nohup = wrapper({
  id: 'nohup',
  title: 'nohup',
  docs: COREUTILS,
  words: ['nohup'],
  options: { flags: [], values: [] },
});

export const setsid = wrapper({
  id: 'setsid',
  title: 'setsid',
  docs: 'https://man7.org/linux/man-pages/man1/setsid.1.html',
  words: ['setsid'],
  options: { flags: ['-c|--ctty', '-f|--fork', '-w|--wait'], values: [] },
});

export const time = wrapper({
  id: 'time',
  title: 'time',
  docs: 'https://www.gnu.org/software/time/',
  words: ['time'],
  options: {
    flags: ['-a|--append', '-p|--portability', '-v|--verbose', '-q|--quiet', '-l'],
    values: ['-f|--format', '-o|--output'],
  },
});

export const nice = wrapper({
  id: 'nice',
  title: 'nice',
  docs: COREUTILS,
  words: ['nice'],
  // `nice -10 command` is the old form of `nice -n 10 command`.
  options: { flags: [...Array(10).keys()].map((digit) => `-${digit}`), values: ['-n|--adjustment'] },
});

export const ionice = wrapper({
  id: 'ionice',
  title: 'ionice',
  docs: 'https://man7.org/linux/man-pages/man1/ionice.1.html',
  words: ['ionice'],
  options: { flags: ['-t|--ignore'], values: ['-c|--class', '-n|--classdata'] },
});

export const chrt = wrapper({
  id: 'chrt',
  title: 'chrt',
  docs: 'https://man7.org/linux/man-pages/man1/chrt.1.html',
  words: ['chrt'],
  options: {
    flags: [
      '-b|--batch',
      '-d|--deadline',
      '-e|--ext',
      '-f|--fifo',
      '-i|--idle',
      '-o|--other',
      '-r|--rr',
      '-R|--reset-on-fork',
      '-v|--verbose',
    ],
    values: ['-T|--sched-runtime', '-P|--sched-period', '-D|--sched-deadline'],
  },
  operands: 1,
});

export const stdbuf = wrapper({
  id: 'stdbuf',
  title: 'stdbuf',
  docs: COREUTILS,
  words: ['stdbuf'],
  options: { flags: [], values: ['-i|--input', '-o|--output', '-e|--error'] },
});

export const timeout = wrapper({
  id: 'timeout',
  title: 'timeout',
  docs: COREUTILS,
  words: ['timeout'],
  options: {
    flags: ['-f|--foreground', '-p|--preserve-status', '-v|--verbose'],
    values: ['-k|--kill-after', '-s|--signal'],
  },
  operands: 1,
  label: ({ operands }) => `timeout ${operands[0]}`,
});

export const taskset = wrapper({
  id: 'taskset',
  title: 'taskset',
  docs: 'https://man7.org/linux/man-pages/man1/taskset.1.html',
  words: ['taskset'],
  // `-c` says that the operand is a list instead of a mask.
  options: { flags: ['-a|--all-tasks', '-c|--cpu-list'], values: [] },
  operands: 1,
});

export const numactl = wrapper({
  id: 'numactl',
  title: 'numactl',
  docs: 'https://man7.org/linux/man-pages/man8/numactl.8.html',
  words: ['numactl'],
  options: {
    flags: ['-a|--all', '-l|--localalloc', '-b|--balancing', '-H|--hardware', '-s|--show'],
    values: [
      '-i|--interleave',
      '-w|--weighted-interleave',
      '-N|--cpunodebind',
      '-C|--physcpubind',
      '-m|--membind',
      '-p|--preferred',
      '-P|--preferred-many',
    ],
  },
});
