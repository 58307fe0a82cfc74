import type { Allocation } from '../contract.ts';

/** Shell text that holds a launch: a file that is started, or the text behind `-c`. */
export interface ShellScript {
  /** As the launch names it; undefined: the text stands on the command line. */
  readonly path: string | undefined;
  /** Argument that names the file or holds the text. */
  readonly token: number;
  readonly text: string;
  /** Arguments of the script, `$1` and on. */
  readonly positional: readonly string[];
  /** `bash`, `sh`, …. */
  readonly interpreter: string;
  /** Started by its own first line, `./train.sh`. */
  readonly direct: boolean;
  /** What the job asks Slurm for. */
  readonly allocation: Allocation | undefined;
  /** `sbatch` starts it elsewhere, later. */
  readonly submitted: boolean;
  /** Line that the user chose among several training commands. */
  readonly line?: number;
}

const SCRIPT_NAME = /\.(?:sh|bash|zsh|ksh|sbatch|slurm|job|submit)$/;

/** Whether a file is a shell script: by its first line, by Slurm's lines, or by its name. */
export const isShellScript = (path: string, text: string): boolean =>
  /^#!.*\b(?:ba|da|z|k)?sh\b/.test(text) ||
  /^#SBATCH\s/m.test(text) ||
  (SCRIPT_NAME.test(path) && !text.startsWith('#!'));

/** The interpreter of the first line; `bash` without one. */
export const interpreterOf = (text: string): string => /^#!.*\b((?:ba|da|z|k)?sh)\b/.exec(text)?.[1] ?? 'bash';

/** A job script is one that Slurm starts. */
export const isJobScript = (path: string, text: string): boolean =>
  /^#SBATCH\s/m.test(text) || /\.(?:sbatch|slurm)$/.test(path);
