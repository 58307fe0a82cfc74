import type { LaunchTarget, PreflightRequest } from '../jobs/index.ts';
import type { CheckFlags, PreflightFlags, RunFlags } from './program.ts';

/** Flags as typed → what a job is asked for. */
export const preflightRequest = (
  target: LaunchTarget,
  flags: PreflightFlags & Partial<RunFlags> & Pick<CheckFlags, 'alternatives'>,
  starts: boolean,
): PreflightRequest => ({
  target,
  starts,
  set: flags.set ?? [],
  ...(flags.alternatives === undefined ? {} : { alternatives: flags.alternatives }),
  ...(flags.gpu === undefined ? {} : { gpu: flags.gpu }),
  ...(flags.model === undefined ? {} : { model: flags.model }),
  policy: {
    ...(flags.mode === undefined ? {} : { mode: flags.mode }),
    ...(flags.allow === undefined ? {} : { allow: flags.allow }),
    ...(flags.forbid === undefined ? {} : { forbid: flags.forbid }),
    ...(flags.keep === undefined ? {} : { keep: flags.keep }),
    ...(flags.headroom === undefined ? {} : { headroom: flags.headroom }),
    ...(flags.retries === undefined ? {} : { maxRetries: flags.retries }),
  },
});
