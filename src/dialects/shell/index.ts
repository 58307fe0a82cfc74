export { sbatch, shell } from './dialects.ts';
export { type InnerReading, type ReadInner, readScript } from './read-script.ts';
export { interpreterOf, isJobScript, isShellScript, type ShellScript } from './script.ts';
