import { spawn } from 'node:child_process';

/** How a program ended and all it said. */
export interface Ended {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly milliseconds: number;
}

/** A program while it runs. */
export interface Running {
  readonly pid: number;
  /** Settles once `pattern` is in the output so far; rejects when the process ends without it. */
  readonly seen: (pattern: RegExp) => Promise<void>;
  readonly signal: (name: NodeJS.Signals) => void;
  readonly ended: Promise<Ended>;
}

/** Starts a program without a shell; its output is kept, its input is empty. */
export function startProcess(argv: readonly string[], cwd: string, env: Readonly<Record<string, string>>): Running {
  const begun = Date.now();
  const child = spawn(argv[0]!, argv.slice(1), { cwd, env, stdio: ['ignore', 'pipe', 'pipe'] });
  const output = { stdout: '', stderr: '' };
  let waiting: { pattern: RegExp; resolve: () => void; reject: (error: Error) => void }[] = [];
  const look = () => {
    waiting = waiting.filter(({ pattern, resolve }) => {
      if (!pattern.test(output.stdout) && !pattern.test(output.stderr)) return true;
      resolve();
      return false;
    });
  };
  for (const stream of ['stdout', 'stderr'] as const) {
    child[stream].setEncoding('utf8').on('data', (chunk: string) => {
      output[stream] += chunk;
      look();
    });
  }
  const ended = new Promise<Ended>((done, fail) => {
    child.on('error', fail);
    child.on('close', (exitCode, signal) => {
      for (const { pattern, reject } of waiting) {
        reject(new Error(`ended (${exitCode ?? signal}) without ${pattern}\n${output.stdout}\n${output.stderr}`));
      }
      done({ exitCode, signal, ...output, milliseconds: Date.now() - begun });
    });
  });
  return {
    pid: child.pid!,
    seen: (pattern) =>
      new Promise((resolve, reject) => {
        waiting.push({ pattern, resolve, reject });
        look();
      }),
    signal: (name) => void child.kill(name),
    ended,
  };
}
