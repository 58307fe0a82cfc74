import { type Diagnostic, error, type Ports } from '../core/index.ts';
import { awaitItsEnd, findEarlierRun } from './earlier-run.ts';
import type { LaunchTarget } from './launch-target.ts';
import { type RunHost, type RunRequest, run } from './run.ts';
import type { RunResult } from './run-result.ts';

export interface ContinueRequest {
  /** The run folder; undefined: the newest. */
  readonly folder: string | undefined;
  /** The launch once more: needed where the kept one had a secret taken out. */
  readonly target: LaunchTarget | undefined;
  /** What was asked for now; it wins over what was asked for then. */
  readonly asked: Partial<RunRequest>;
}

const unreadable = (...diagnostics: readonly Diagnostic[]): RunResult => ({ kind: 'unreadable', diagnostics });

/** `snug run --continue`: the same run, with the settings of its last attempt, from its last complete checkpoint. */
export async function continueRun(ports: Ports, request: ContinueRequest, host: RunHost): Promise<RunResult> {
  const found = findEarlierRun(ports, request.folder);
  if (!found.ok) return unreadable(...found.error);
  const earlier = found.value;
  const { record } = earlier;
  if (record.masked && !request.target) {
    return unreadable(
      error('secret-not-kept', 'the command of this run holds a secret, which the run folder does not keep', {
        help: `give the command again: snug run --continue ${request.folder ?? earlier.path} -- COMMAND`,
      }),
    );
  }
  const stillGoing = await awaitItsEnd(earlier, ({ pid }) => host.emit({ kind: 'waiting-for-watcher', pid }));
  if (stillGoing) return unreadable(stillGoing);
  const { request: then } = record;
  return run(
    ports,
    {
      ...then,
      ...request.asked,
      target: request.target ?? then.target,
      policy: { ...then.policy, ...request.asked.policy },
      starts: true,
      dryRun: request.asked.dryRun ?? false,
      retriesAsked: then.retriesAsked || request.asked.retriesAsked === true,
      continued: earlier,
    },
    host,
  );
}
