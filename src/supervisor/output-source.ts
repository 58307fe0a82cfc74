import { type OnReadOpts, Socket, type SocketConstructorOpts } from 'node:net';

/** Where one of the child's streams comes out. */
export interface OutputSource {
  /** `take` gets each piece that was read, `onEnd` the end of the stream, maybe more than once. Whoever keeps a piece longer copies it. */
  readonly read: (take: (chunk: Buffer) => void, onEnd: () => void) => void;
  readonly pause: () => void;
  readonly resume: () => void;
  /** Stops reading for good. */
  readonly destroy: () => void;
  /** For somebody who is to read on after us: the descriptor of a pipe, or libuv's handle of a socket. */
  readonly end: { readonly fd: number } | { readonly handle: unknown };
}

/** What a pipe holds at most. */
const PIECE_BYTES = 64 * 1024;
const ENDS = ['end', 'close', 'error'] as const;

/** Reads a pipe into one buffer, over and over: a fresh one for each piece would cost a flood more than the reading does. */
export function readPipe(fd: number): OutputSource {
  let take: (chunk: Buffer) => void = () => {};
  const buffer = Buffer.allocUnsafeSlow(PIECE_BYTES);
  const options: SocketConstructorOpts & { readonly onread: OnReadOpts } = {
    fd,
    readable: true,
    writable: false,
    onread: {
      buffer,
      callback(length) {
        take(buffer.subarray(0, length));
        return true;
      },
    },
  };
  const socket = new Socket(options);
  // Its end would not be told otherwise.
  socket.resume();
  return {
    read(taker, onEnd) {
      take = taker;
      for (const event of ENDS) socket.on(event, onEnd);
    },
    pause: () => socket.pause(),
    resume: () => socket.resume(),
    destroy: () => socket.destroy(),
    end: { fd },
  };
}

/** Reads a stream as Node makes it for a child. */
export function readStream(stream: NodeJS.ReadableStream & { destroy: () => void }): OutputSource {
  return {
    read(take, onEnd) {
      stream.on('data', take);
      for (const event of ENDS) stream.on(event, onEnd);
    },
    pause: () => stream.pause(),
    resume: () => stream.resume(),
    destroy: () => stream.destroy(),
    end: { handle: (stream as { _handle?: unknown })._handle },
  };
}
