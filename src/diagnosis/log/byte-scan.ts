/** Calls back with the offset of every place in `bytes[from, to)` where one of the words begins, in no strict order. */
export type ByteScan = (bytes: Uint8Array, from: number, to: number, hit: (offset: number) => void) => void;

/** Bytes looked at together. */
const GRAM = 3;
/** Every word has this many bytes by which it is found; none may be shorter. */
const WINDOW = 7;
/** Any window has one gram that begins at a multiple of this. */
const STRIDE = WINDOW - GRAM + 1;
const BUCKETS = 1 << 16;

const hashOf = (a: number, b: number, c: number): number => Math.imul((a << 16) | (b << 8) | c, 0x9e3779b1) >>> 16;

/** Words that logs are full of: a gram of theirs finds little. */
const EVERYWHERE =
  ' memory step steps loss train training epoch error warning info token tokens model rank device process cuda torch batch host gpu running loading checkpoint data dataset eval worker time learning_rate grad_norm status code failed file line the -> : , ';
const everywhere = new Set(Array.from({ length: EVERYWHERE.length - 2 }, (_, at) => EVERYWHERE.slice(at, at + 3)));
const TOO_COMMON = 40;

/** How often a byte is met in logs, roughly. */
function commonness(code: number): number {
  if (code === 0x20) return 14;
  if (code >= 0x30 && code <= 0x39) return 6;
  if (code >= 0x41 && code <= 0x5a) return 1;
  return code >= 0x61 && code <= 0x7a ? ('etaoinsrlhd'.includes(String.fromCharCode(code)) ? 7 : 3) : 2;
}

/** Where in a word its window stands best: on rare grams. */
function windowOf(text: string): number {
  const costOf = (at: number): number => {
    let sum = 0;
    for (let gram = at; gram < at + STRIDE; gram++) {
      const [a, b, c] = [0, 1, 2].map((index) => commonness(text.charCodeAt(gram + index))) as [number, number, number];
      sum += a * b * c * (everywhere.has(text.slice(gram, gram + GRAM)) ? TOO_COMMON : 1);
    }
    return sum;
  };
  const places = Array.from({ length: text.length - WINDOW + 1 }, (_, at) => at);
  return places.reduce((best, next) => (costOf(next) < costOf(best) ? next : best), 0);
}

/** Every gram by which a word is found, sorted by its hash, in flat arrays: they are walked a million times. */
function indexOf(texts: readonly string[]) {
  const places = texts.flatMap((text) => {
    const word = Uint8Array.from(text, (letter) => letter.charCodeAt(0));
    const window = windowOf(text);
    return Array.from({ length: STRIDE }, (_, index) => {
      const at = window + index;
      return { word, at, hash: hashOf(word[at]!, word[at + 1]!, word[at + 2]!) };
    });
  });
  places.sort((left, right) => left.hash - right.hash);
  /** First place of a hash, plus one; 0: no word has it. */
  const first = new Uint16Array(BUCKETS);
  for (let index = places.length - 1; index >= 0; index--) first[places[index]!.hash] = index + 1;
  const at = Int32Array.from(places, (place) => place.at);
  const begin = Uint8Array.from(places, ({ word }) => word[0]!);
  const end = Uint8Array.from(places, ({ word }) => word.at(-1)!);
  const hash = Int32Array.from(places, (place) => place.hash);
  return { words: places.map(({ word }) => word), first, at, begin, end, hash };
}

/**
 * Searches many words at once in bytes: of every five places one is looked at, and only where three bytes there belong to a word
 * is anything compared. No step waits for the one before, as it does where the text decides how far to jump. Words are ASCII.
 */
export function createByteScan(texts: readonly string[]): ByteScan {
  const short = texts.find((text) => text.length < WINDOW);
  if (short !== undefined) throw new Error(`'${short}' is too short to be searched for`);
  const { words, first, at: places, begin, end: ends, hash } = indexOf(texts);
  const longest = Math.max(...texts.map((text) => text.length));
  const compare = (bytes: Uint8Array, gram: number, from: number, to: number, hit: (offset: number) => void): void => {
    const wanted = hashOf(bytes[gram]!, bytes[gram + 1]!, bytes[gram + 2]!);
    for (let place = first[wanted]! - 1; hash[place] === wanted; place++) {
      const start = gram - places[place]!;
      if (start < from || start >= to || bytes[start] !== begin[place]) continue;
      const word = words[place]!;
      if (bytes[start + word.length - 1] !== ends[place]) continue;
      let index = 1;
      while (index < word.length && bytes[start + index] === word[index]) index++;
      if (index < word.length) continue;
      hit(start);
      return;
    }
  };

  return (bytes, from, to, hit) => {
    // A gram may stand past `to`, in a word that begins before it.
    const end = Math.min(to + longest, bytes.length) - GRAM + 1;
    for (let at = from; at < end; at += STRIDE) {
      if (first[hashOf(bytes[at]!, bytes[at + 1]!, bytes[at + 2]!)] !== 0) compare(bytes, at, from, to, hit);
    }
  };
}

/** How many lines end in `bytes[from, to)`; four bytes at a time where they are aligned. */
export function countNewlines(bytes: Uint8Array, from: number, to: number): number {
  let count = 0;
  let at = from;
  while (at < to && (bytes.byteOffset + at) % 4 !== 0) if (bytes[at++] === 0x0a) count++;
  const words = Math.max(0, (to - at) >> 2);
  const quads = words === 0 ? [] : new Int32Array(bytes.buffer, bytes.byteOffset + at, words);
  for (let index = 0; index < words; index++) {
    const other = quads[index]! ^ 0x0a0a0a0a;
    // The high bit of every byte that is zero, that is, was a line end.
    let ends = ~(((other & 0x7f7f7f7f) + 0x7f7f7f7f) | other | 0x7f7f7f7f);
    while (ends !== 0) {
      ends &= ends - 1;
      count++;
    }
  }
  for (at += 4 * words; at < to; at++) if (bytes[at] === 0x0a) count++;
  return count;
}
