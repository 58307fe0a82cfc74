/** A piece of a chunk at a time; pipes bring no more at once. */
const PIECE_BYTES = 64 * 1024;
/** Of a lead. */
const LEAD_BYTES = 5;
const NEWLINE = 0x0a;

/** Writes a lead of five bytes in front of every line. */
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
  // The piece stands in front, what is made of it behind: at most a lead for each byte, and one.
  const work = Buffer.allocUnsafeSlow(PIECE_BYTES + (1 + LEAD_BYTES) * PIECE_BYTES + LEAD_BYTES);
  return {
    add(bytes, lead, leadFirst, emit) {
      const [a, b, c, d, e] = lead as unknown as [number, number, number, number, number];
      let lines = 0;
      for (let begin = 0; begin < bytes.length; begin += PIECE_BYTES) {
        const length = bytes.copy(work, 0, begin, begin + PIECE_BYTES);
        let filled = PIECE_BYTES;
        if (leadFirst && begin === 0) filled += lead.copy(work, filled);
        let from = 0;
        for (let at = bytes.indexOf(NEWLINE, begin); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) {
          const to = at + 1 - begin;
          if (to > length) break;
          work.copyWithin(filled, from, to);
          filled += to - from;
          from = to;
          work[filled] = a;
          work[filled + 1] = b;
          work[filled + 2] = c;
          work[filled + 3] = d;
          work[filled + 4] = e;
          filled += LEAD_BYTES;
          lines++;
        }
        work.copyWithin(filled, from, length);
        filled += length - from;
        const endsLine = from === length && begin + length === bytes.length;
        emit(work.subarray(PIECE_BYTES, endsLine ? filled - LEAD_BYTES : filled));
      }
      return lines;
    },
  };
}
