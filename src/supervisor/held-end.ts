import { countNewlines, type SkippedTo } from '../diagnosis/index.ts';

/** Kept at least, unless a line in front of it began earlier: the traceback above a message. */
const CONTEXT = 32 * 1024;
/** Small chunks are gathered up to here, so that they are not moved each time. */
const ROOM = 4 * CONTEXT;
const NEWLINE = 0x0a;
const RETURN = 0x0d;

/** Lines that were let go of, and where that ended. */
export interface LetGo extends Pick<SkippedTo, 'place'> {
  readonly lines: number;
}

/** The end of what was passed over in one stream; a copy. It begins where a line does, unless a line is longer than all of it. */
export interface HeldEnd {
  /** `lines`: how many line ends are in `bytes`. */
  readonly add: (bytes: Buffer, lines: number) => void;
  readonly bytes: () => Buffer;
  /** What was let go of since the last call. */
  readonly takeLetGo: () => LetGo | undefined;
}

/** Behind the first line end of `bytes`, a refresh of a bar only where there is no other; 0: there is none. */
export const afterFirstLine = (bytes: Buffer): number => bytes.indexOf(NEWLINE) + 1 || bytes.indexOf(RETURN) + 1;

export function createHeldEnd(): HeldEnd {
  const buffer = Buffer.allocUnsafeSlow(ROOM);
  let length = 0;
  /** Line ends in all that came, in what was let go of and told. */
  let came = 0;
  let told = 0;
  let place: SkippedTo['place'] | undefined;
  /** Where a rest of about `CONTEXT` begins in `bytes`, of which more follows after its end. */
  const cutOf = (bytes: Buffer, more: number): number => {
    const least = bytes.length + more - CONTEXT;
    const after = afterFirstLine(bytes.subarray(least));
    place = after === 0 ? 'inside' : bytes[least + after - 1] === NEWLINE ? 'line' : 'refresh';
    return least + after;
  };
  return {
    add(bytes, lines) {
      came += lines;
      if (length + bytes.length > ROOM) {
        if (bytes.length >= CONTEXT) {
          length = bytes.copy(buffer, 0, cutOf(bytes, 0));
          return;
        }
        const cut = cutOf(buffer.subarray(0, length), bytes.length);
        buffer.copyWithin(0, cut, length);
        length -= cut;
      }
      length += bytes.copy(buffer, length);
    },
    bytes: () => buffer.subarray(0, length),
    takeLetGo() {
      if (place === undefined) return undefined;
      const before = came - countNewlines(buffer, 0, length);
      const letGo: LetGo = { lines: before - told, place };
      told = before;
      place = undefined;
      return letGo;
    },
  };
}
