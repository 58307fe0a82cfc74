import type { TerminalLink } from '../supervisor/index.ts';

/** Keys by which a terminal sends signals. They go the way of all signals to snug, so that asking three times ends any trainer. */
const SIGNAL_OF_KEY: ReadonlyMap<number, NodeJS.Signals> = new Map([
  [0x03, 'SIGINT'],
  [0x1a, 'SIGTSTP'],
  [0x1c, 'SIGQUIT'],
]);

/** The terminal we sit at, for a trainer in a pseudo-terminal of its own. Undefined: there is none. */
export function terminalLink(): TerminalLink | undefined {
  const { stdin, stdout } = process;
  if (!stdin.isTTY || !stdout.isTTY) return undefined;
  return {
    columns: stdout.columns || 80,
    rows: stdout.rows || 24,
    attach(terminal) {
      const raw = (): void => void stdin.setRawMode(true);
      const cooked = (): void => void stdin.setRawMode(false);
      const onKeys = (keys: Buffer): void => {
        const [key] = keys;
        const signal = keys.length === 1 ? SIGNAL_OF_KEY.get(key!) : undefined;
        if (signal === undefined) {
          terminal.write(keys);
          return;
        }
        // A shell that gets its prompt back expects its own terminal, and a suspension takes the whole job.
        if (signal === 'SIGTSTP') cooked();
        process.kill(signal === 'SIGTSTP' ? 0 : process.pid, signal);
      };
      const onResize = (): void => terminal.resize(stdout.columns || 80, stdout.rows || 24);
      raw();
      stdin.on('data', onKeys);
      stdin.resume();
      stdout.on('resize', onResize);
      process.on('SIGCONT', raw);
      process.on('exit', cooked);
      return () => {
        stdin.off('data', onKeys);
        stdin.pause();
        stdout.off('resize', onResize);
        process.off('SIGCONT', raw);
        process.off('exit', cooked);
        cooked();
      };
    },
  };
}
