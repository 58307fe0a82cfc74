/** Calls back with the offset of every place in `bytes[from, to)` where one of the words begins, in no strict order. */
export type ByteScan = (bytes: Uint8Array, from: number, to: number, hit: (offset: number) => void) => void;

/** Bytes looked at together, at places that are a multiple of it in memory: so they are read as one number. */
const GRAM = 4;
/** Every word has this many bytes by which it is found; none may be shorter. Exactly one gram of any window stands at such a place. */
const WINDOW = 2 * GRAM - 1;
/** Hashes a gram can have; the filter in front of the table is small enough for the nearest cache. */
const HASH_BITS = 16;
const FILTER_BITS = 14;

/** Top bits of a gram times the golden ratio: of `HASH_BITS` for the table, of `FILTER_BITS` for the filter. */
const hashOf = (gram: number): number => Math.imul(gram, 0x9e3779b1) >>> (32 - HASH_BITS);
const sieveOf = (gram: number): number => Math.imul(gram, 0x9e3779b1) >>> (32 - FILTER_BITS);

/** Four bytes as this machine reads them from memory. */
const gramAt = (bytes: Uint8Array, at: number): number => new Int32Array(bytes.slice(at, at + GRAM).buffer)[0]!;

/** Words that logs are full of: a gram of theirs finds little. */
const EVERYWHERE =
  ' memory step steps loss train training epoch error warning info token tokens model rank device process cuda torch batch host gpu running loading checkpoint data dataset eval worker time learning_rate grad_norm status code failed file line the -> : , ';
const everywhere = new Set(
  Array.from({ length: EVERYWHERE.length - GRAM + 1 }, (_, at) => EVERYWHERE.slice(at, at + GRAM)),
);
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
    for (let gram = at; gram < at + GRAM; gram++) {
      const letters = text.slice(gram, gram + GRAM);
      const product = [...letters].reduce((value, letter) => value * commonness(letter.charCodeAt(0)), 1);
      sum += product * (everywhere.has(letters) ? TOO_COMMON : 1);
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
    return Array.from({ length: GRAM }, (_, index) => {
      const at = window + index;
      const gram = gramAt(word, at);
      return { word, at, gram, hash: hashOf(gram) };
    });
  });
  places.sort((left, right) => left.hash - right.hash);
  /** Whether any word has such a gram; some others are let through. */
  const sieve = new Uint8Array(1 << FILTER_BITS);
  for (const { gram } of places) sieve[sieveOf(gram)] = 1;
  /** First place of a hash, plus one; 0: no word has it. */
  const first = new Uint16Array(1 << HASH_BITS);
  for (let index = places.length - 1; index >= 0; index--) first[places[index]!.hash] = index + 1;
  const at = Int32Array.from(places, (place) => place.at);
  const begin = Uint8Array.from(places, ({ word }) => word[0]!);
  const end = Uint8Array.from(places, ({ word }) => word.at(-1)!);
  const hash = Int32Array.from(places, (place) => place.hash);
  return { words: places.map(({ word }) => word), sieve, first, at, begin, end, hash };
}

/**
 * Searches many words at once in bytes: of every four places one is looked at, and only where the four bytes there belong to a word
 * is anything compared. No step waits for the one before, as it does where the text decides how far to jump. Words are ASCII.
 */
export function createByteScan(texts: readonly string[]): ByteScan {
  const short = texts.find((text) => text.length < WINDOW);
  if (short !== undefined) throw new Error(`'${short}' is too short to be searched for`);
  const { words, sieve, first, at: places, begin, end: ends, hash } = indexOf(texts);
  const longest = Math.max(...texts.map((text) => text.length));
  interface Search {
    readonly bytes: Uint8Array;
    readonly from: number;
    readonly to: number;
    readonly hit: (offset: number) => void;
  }
  /** `at`: where `gram` stands. */
  const compare = ({ bytes, from, to, hit }: Search, at: number, gram: number): void => {
    const wanted = hashOf(gram);
    for (let place = first[wanted]! - 1; hash[place] === wanted; place++) {
      const start = at - places[place]!;
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
    const end = Math.min(to + longest, bytes.length);
    const least = from + ((GRAM - ((bytes.byteOffset + from) % GRAM)) % GRAM);
    const count = (end - least) >> 2;
    if (count <= 0) return;
    const search: Search = { bytes, from, to, hit };
    const grams = new Int32Array(bytes.buffer, bytes.byteOffset + least, count);
    const look = (index: number): void => {
      const gram = grams[index]!;
      if (sieve[sieveOf(gram)] !== 0) compare(search, least + GRAM * index, gram);
    };
    let index = 0;
    for (const last = count - 3; index < last; index += 4) {
      const some =
        sieve[sieveOf(grams[index]!)]! |
        sieve[sieveOf(grams[index + 1]!)]! |
        sieve[sieveOf(grams[index + 2]!)]! |
        sieve[sieveOf(grams[index + 3]!)]!;
      if (some !== 0) for (let one = index; one < index + 4; one++) look(one);
    }
    for (; index < count; index++) look(index);
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
