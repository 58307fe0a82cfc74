import { type OptionScan, scanOptions } from '../scan-options.ts';
import { TORCHRUN_OPTIONS } from '../torchrun/keys.ts';

/** `tune run [torchrun options] RECIPE …` in its parts. Source: torchtune/_cli/run.py. */
export interface TuneScan {
  readonly options: OptionScan;
  /** Token of the recipe; undefined: there is none. */
  readonly recipe: number | undefined;
}

/** `from`: first token after `tune run`. */
export function scanTune(argv: readonly string[], from: number): TuneScan {
  const options = scanOptions(argv, from, TORCHRUN_OPTIONS);
  return { options, recipe: options.stuck || options.next >= argv.length ? undefined : options.next };
}
