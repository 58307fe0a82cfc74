import { closest, distance } from 'fastest-levenshtein';

/** `did you mean max_length` where a known word is near, else all of them where they are few. */
export function didYouMean(word: string, known: readonly string[]): string {
  const nearest = known.length > 0 ? closest(word, [...known]) : undefined;
  const steps = nearest === undefined ? Number.POSITIVE_INFINITY : distance(word, nearest);
  // Two slips in a short word are a typo, as many as it has letters are another word.
  if (steps < word.length && steps <= Math.max(2, Math.floor(word.length / 3))) {
    return `did you mean ${nearest}`;
  }
  return known.length <= 12 ? `known are ${known.join(', ')}` : 'take the key out, or see what snug dialects lists';
}
