import type { Dialect } from '../dialect.ts';
import { sbatch, shell } from '../shell/dialects.ts';
import { around } from './around.ts';
import { assignments } from './assignments.ts';
import { mpiexec, mpirun, orterun, srun } from './cluster.ts';
import { conda, mamba, micromamba } from './conda.ts';
import { env } from './env.ts';
import { chrt, ionice, nice, nohup, numactl, setsid, stdbuf, taskset, time, timeout } from './process.ts';
import { hatch, pdm, pipenv, pixi, poetry, rye } from './project-tools.ts';
import { sudo } from './sudo.ts';
import { unreadCommand } from './unread-command.ts';
import { uvRun, uvToolRun, uvx } from './uv.ts';

/** What may stand in front of a launch; peeled one after the other, outermost first. */
export const WRAPPERS: readonly Dialect[] = [
  assignments,
  env,
  sudo,
  nohup,
  setsid,
  time,
  timeout,
  nice,
  ionice,
  chrt,
  stdbuf,
  taskset,
  numactl,
  conda,
  mamba,
  micromamba,
  uvRun,
  uvToolRun,
  uvx,
  poetry,
  pdm,
  pipenv,
  rye,
  hatch,
  pixi,
  srun,
  mpirun,
  mpiexec,
  orterun,
  around,
  shell,
  sbatch,
  unreadCommand,
];

export { program } from './program.ts';
