import type { RunHost, RunResult } from '../jobs/index.ts';
import { maskSecrets, type RunEvent, renderRunEvent, runEventJson } from '../report/index.ts';
import { isWorthTelling, type Notifier } from './notifier.ts';

export interface NoticesOptions {
  readonly notifier: Notifier | undefined;
  /** `--bell`, and a terminal to hear it. */
  readonly bell: boolean;
  readonly exitCodeOf: (result: RunResult) => number;
}

const BELL = '\x07';
/** `snug: ` stands before every line for a terminal; a message of its own needs none. */
const plainText = (event: RunEvent): string =>
  renderRunEvent(event, { colour: false, width: 1000, unicode: true }).replaceAll(/^snug: /gm, '');

/** What a run tells outside its terminal: a command for each event that matters, a bell when it ends or stands still. */
export function createNotices({ notifier, bell, exitCodeOf }: NoticesOptions) {
  const ring = (): void => {
    if (bell) process.stderr.write(BELL);
  };
  return {
    /** The host, with every event also told outside. */
    around: (host: RunHost): RunHost => ({
      ...host,
      emit(event) {
        host.emit(event);
        if (event.kind === 'stalled') ring();
        if (isWorthTelling(event))
          notifier?.tell({ ...runEventJson(event), text: plainText(event), cwd: process.cwd() });
      },
    }),
    /** After the last word; resolves with what went wrong in telling. */
    async finish(result: RunResult): Promise<readonly string[]> {
      if (result.kind === 'ended') {
        const exitCode = exitCodeOf(result);
        ring();
        notifier?.tell({
          event: 'ended',
          exit_code: exitCode,
          whose: result.ending.whose,
          attempts: result.attempts.length,
          run_folder: result.runFolder,
          text: maskSecrets(`snug: the run ended with exit code ${exitCode} (${result.runFolder})`),
          cwd: process.cwd(),
        });
      }
      return (await notifier?.finish()) ?? [];
    },
  };
}
