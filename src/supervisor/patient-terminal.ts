/** Node's handle of a terminal. */
interface TerminalHandle {
  readonly fd?: number;
  readonly setBlocking?: (on: boolean) => number;
}

/**
 * Node lets writes to a terminal wait until they are done, and all of us with them: a terminal that is stopped (Ctrl-S, a connection
 * that hangs) would stop the trainer. From here on what it does not take at once waits in the stream. Returns the way back. Only where
 * Node has opened the terminal anew: else the program that started us, and the trainer's stdin, would no longer wait either.
 */
export function keepFromWaiting(target: NodeJS.WritableStream): () => void {
  const { fd, isTTY, _handle: handle } = target as { fd?: number; isTTY?: boolean; _handle?: TerminalHandle | null };
  const isOurs = isTTY === true && handle?.fd !== undefined && handle.fd > 2 && handle.fd !== fd;
  if (!isOurs || !handle.setBlocking) return () => {};
  handle.setBlocking(false);
  return () => void handle.setBlocking?.(true);
}
