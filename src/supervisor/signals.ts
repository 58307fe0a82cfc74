import type { Child } from './start-child.ts';

/** Requests to end. A second one is meant seriously, a third one at once. */
const ENDING: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];
/** Sent by a terminal to everything in its foreground. */
const FROM_TERMINAL: readonly NodeJS.Signals[] = ['SIGINT', 'SIGQUIT'];
/** Scheduler warnings before the end; passed on, and noted so that nobody starts the run again. */
const WARNINGS: readonly NodeJS.Signals[] = ['SIGUSR1', 'SIGUSR2'];

export interface SignalRelay {
  readonly relay: (name: NodeJS.Signals) => void;
  /** First ending or warning signal passed on. */
  readonly forwarded: () => NodeJS.Signals | undefined;
  /** An ending signal has been passed on. */
  readonly ending: () => boolean;
}

export interface RelayTo {
  readonly child: Child;
  readonly stopTree: () => void;
  readonly killTree: () => void;
  /** Sends a signal to every process of the tree. */
  readonly toTree: (name: NodeJS.Signals) => void;
}

const send = (pid: number, name: NodeJS.Signals): void => {
  try {
    process.kill(pid, name);
  } catch {
    // It has just ended.
  }
};

export function createSignalRelay({ child, stopTree, killTree, toTree }: RelayTo): SignalRelay {
  let forwarded: NodeJS.Signals | undefined;
  let requests = 0;

  const pass = (name: NodeJS.Signals): void => {
    if (child.pid === undefined) return;
    // In the terminal's foreground the child has it already; twice in a row would break off its cleanup.
    if (FROM_TERMINAL.includes(name) && !child.ownSession) return;
    // To the leader's group, as a terminal would: a shell script in front waits for its child and does not hand it on.
    // Workers that torchrun starts are in sessions of their own and get it from torchrun.
    send(FROM_TERMINAL.includes(name) ? -child.pid : child.pid, name);
  };
  return {
    relay(name) {
      // A group whose parent is in another session is not stopped by SIGTSTP, and workers have sessions of their own.
      if (name === 'SIGTSTP') return toTree('SIGSTOP');
      if (name === 'SIGCONT') return toTree('SIGCONT');
      if (ENDING.includes(name)) {
        requests++;
        if (requests === 2) stopTree();
        if (requests > 2) killTree();
        if (requests > 1) return;
      }
      if (ENDING.includes(name) || WARNINGS.includes(name)) forwarded ??= name;
      pass(name);
    },
    forwarded: () => forwarded,
    ending: () => requests > 0,
  };
}
