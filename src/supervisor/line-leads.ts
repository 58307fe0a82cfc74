/** A piece of a chunk at a time; pipes bring no more at once. */
const PIECE_BYTES = 64 * 1024;
const ROOM_BYTES = 4 * PIECE_BYTES;
const NEWLINE = 0x0a;

/** Writes a lead in front of every line. */
export interface LineLeads {
  /**
   * Emits `bytes` with `lead` behind every line end but one at the very end; with `leadFirst` also in front. What is emitted is
   * overwritten by the next call. Returns how many line ends there were.
   */
  readonly add: (bytes: Buffer, lead: Buffer, leadFirst: boolean, emit: (bytes: Uint8Array) => void) => number;
}

/**
 * One buffer is used over and over, and lines are moved inside it: a flood has ten million of them, and an object for each chunk or
 * line is paid for twice, the second time by the collection of garbage.
 */
export function createLineLeads(): LineLeads {
  // The piece stands in front, what is made of it behind.
  const work = Buffer.allocUnsafe(PIECE_BYTES + ROOM_BYTES);
  let filled = PIECE_BYTES;
  const flush = (emit: (bytes: Uint8Array) => void): void => {
    if (filled > PIECE_BYTES) emit(work.subarray(PIECE_BYTES, filled));
    filled = PIECE_BYTES;
  };
  const put = (lead: Buffer): void => {
    for (let index = 0; index < lead.length; index++) work[filled++] = lead[index]!;
  };
  return {
    add(bytes, lead, leadFirst, emit) {
      let lines = 0;
      if (leadFirst) put(lead);
      for (let begin = 0; begin < bytes.length; begin += PIECE_BYTES) {
        const length = bytes.copy(work, 0, begin, begin + PIECE_BYTES);
        const isLast = begin + length === bytes.length;
        for (let from = 0; from < length; ) {
          const newline = bytes.indexOf(NEWLINE, begin + from) + 1;
          const to = newline === 0 ? length : Math.min(length, newline - begin);
          if (filled + to - from + lead.length > work.length) flush(emit);
          work.copyWithin(filled, from, to);
          filled += to - from;
          from = to;
          if (work[to - 1] !== NEWLINE) continue;
          lines++;
          if (!(isLast && to === length)) put(lead);
        }
      }
      flush(emit);
      return lines;
    },
  };
}
