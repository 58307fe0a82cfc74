/** How the two streams look to the user: colour and motion only where a person watches. */
export interface Terminal {
  /** Results. */
  readonly out: (text: string) => void;
  /** Talk. */
  readonly err: (text: string) => void;
  readonly width: number;
  readonly unicode: boolean;
  readonly outColour: boolean;
  readonly errColour: boolean;
  /** Shows what is being looked at, on a terminal only; the returned function takes it away. */
  readonly spin: (text: string) => Promise<() => void>;
}

const SETTLED = (): void => {};

/** https://no-color.org and https://force-color.org; a dumb terminal has no colours. */
function wantsColour(stream: NodeJS.WriteStream, env: NodeJS.ProcessEnv): boolean {
  if (env.NO_COLOR) return false;
  if (env.FORCE_COLOR && env.FORCE_COLOR !== '0') return true;
  return Boolean(stream.isTTY) && env.TERM !== 'dumb';
}

/** What writing can fail with though nothing is wrong with the run: a closed pipe or terminal, a full disk behind a redirection. */
const OUTSIDE = new Set(['EPIPE', 'EIO', 'ENOSPC', 'EDQUOT', 'EFBIG']);

/** A pipe that closes early (`snug … | head`) ends our writing, not the run. */
const ignoreClosedPipe = (stream: NodeJS.WriteStream): void => {
  stream.on('error', (failure: NodeJS.ErrnoException) => {
    if (!OUTSIDE.has(failure.code ?? '')) throw failure;
  });
};

export function createTerminal(options: { readonly quiet: boolean }): Terminal {
  const { stdout, stderr, env } = process;
  ignoreClosedPipe(stdout);
  ignoreClosedPipe(stderr);
  const locale = env.LC_ALL || env.LC_CTYPE || env.LANG || '';
  const width = Number(env.COLUMNS) || stderr.columns || stdout.columns || 80;
  const unicode = /utf-?8/i.test(locale) || process.platform === 'darwin';
  return {
    out: (text) => void stdout.write(text.endsWith('\n') ? text : `${text}\n`),
    err: (text) => {
      if (text !== '') stderr.write(text.endsWith('\n') ? text : `${text}\n`);
    },
    width: Math.max(40, Math.min(width, 120)),
    unicode,
    outColour: wantsColour(stdout, env),
    errColour: wantsColour(stderr, env),
    spin: async (text) => {
      // A terminal that was never told its size has 0 columns: the spinner would clear lines without end.
      if (options.quiet || !stderr.isTTY || !stderr.columns || env.TERM === 'dumb' || env.CI) return SETTLED;
      const { default: ora } = await import('ora');
      const spinner = ora({
        text,
        stream: stderr,
        discardStdin: false,
        color: wantsColour(stderr, env) ? 'cyan' : false,
        spinner: unicode ? 'dots' : 'line',
      }).start();
      return () => void spinner.stop();
    },
  };
}
