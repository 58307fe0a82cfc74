const BLOCK_BYTES = 64 * 1024;
/** More than that is given to the garbage collector. */
const MOST_SPARE = 32;

/** A piece of a queue, in a block of its own. */
export interface QueuedPiece {
  readonly bytes: Buffer;
  readonly block: Buffer;
}

/** Bytes that wait, first in, first out. They are copied into blocks that are used over and over: a flood makes no garbage. */
export interface ByteQueue {
  readonly add: (bytes: Uint8Array) => void;
  /** The oldest piece; undefined: nothing waits. */
  readonly take: () => QueuedPiece | undefined;
  /** A block to fill with something else; given back as a piece. */
  readonly borrow: () => Buffer;
  /** Nobody looks at the bytes of this piece any more. */
  readonly giveBack: (piece: QueuedPiece) => void;
  readonly length: () => number;
  readonly clear: () => void;
}

export function createByteQueue(): ByteQueue {
  const spare: Buffer[] = [];
  let full: { readonly block: Buffer; used: number }[] = [];
  let length = 0;
  const borrow = (): Buffer => spare.pop() ?? Buffer.allocUnsafeSlow(BLOCK_BYTES);
  return {
    borrow,
    add(bytes) {
      length += bytes.length;
      for (let from = 0; from < bytes.length; ) {
        let last = full.at(-1);
        if (!last || last.used === BLOCK_BYTES) {
          last = { block: borrow(), used: 0 };
          full.push(last);
        }
        const part = bytes.subarray(from, from + BLOCK_BYTES - last.used);
        last.block.set(part, last.used);
        last.used += part.length;
        from += part.length;
      }
    },
    take() {
      const first = full.shift();
      if (!first) return undefined;
      length -= first.used;
      return { bytes: first.block.subarray(0, first.used), block: first.block };
    },
    giveBack({ block }) {
      if (spare.length < MOST_SPARE) spare.push(block);
    },
    length: () => length,
    clear() {
      full = [];
      length = 0;
    },
  };
}
