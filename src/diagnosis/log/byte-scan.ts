/** Calls back with the offset of every place in `bytes[from, to)` where one of the words may begin; false alarms are possible. */
export type ByteScan = (bytes: Uint8Array, from: number, to: number, hit: (offset: number) => void) => void;

const BITMAP_BITS = 1 << 16;
const hashOf = (a: number, b: number, c: number, d: number): number =>
  (((a * 31 + b) * 31 + c) * 31 + d) & (BITMAP_BITS - 1);

/**
 * Searches many words at once in bytes (Wu and Manber 1994): by the last two bytes of a window of four, most places are jumped
 * over; where a word may begin, a bitmap of the words' first four bytes decides. Words are ASCII, four letters or longer.
 */
export function createByteScan(words: readonly string[]): ByteScan {
  const short = words.find((word) => word.length < 4);
  if (short !== undefined) throw new Error(`'${short}' is too short to be searched for`);
  const shift = new Uint8Array(1 << 16).fill(3);
  const begins = new Uint8Array(BITMAP_BITS);
  for (const word of words) {
    const [a, b, c, d] = [0, 1, 2, 3].map((at) => word.charCodeAt(at)) as [number, number, number, number];
    shift[(c << 8) | d] = 0;
    shift[(b << 8) | c] = Math.min(1, shift[(b << 8) | c]!);
    shift[(a << 8) | b] = Math.min(2, shift[(a << 8) | b]!);
    begins[hashOf(a, b, c, d)] = 1;
  }
  const longest = Math.max(...words.map((word) => word.length));
  const coded = words.map((word) => Uint8Array.from(word, (letter) => letter.charCodeAt(0)));
  const isWord = (bytes: Uint8Array, at: number): boolean =>
    coded.some((word) => {
      for (let index = 0; index < word.length; index++) if (bytes[at + index] !== word[index]) return false;
      return true;
    });

  return (bytes, from, to, hit) => {
    // A word may end past `to`; it is looked at whole only where its bytes are there.
    const end = Math.min(to + longest, bytes.length);
    let at = from + 3;
    while (at < end) {
      const jump = shift[(bytes[at - 1]! << 8) | bytes[at]!]!;
      if (jump > 0) {
        at += jump;
        continue;
      }
      const start = at - 3;
      if (begins[hashOf(bytes[start]!, bytes[start + 1]!, bytes[start + 2]!, bytes[start + 3]!)] === 1) {
        if (start < to && isWord(bytes, start)) hit(start);
      }
      at++;
    }
  };
}

/** How many lines end in `bytes[from, to)`. */
export function countNewlines(bytes: Uint8Array, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) if (bytes[at] === 0x0a) count++;
  return count;
}
