/** How many answers to different questions are remembered. */
const KEPT = 32;

/** The latest answers to questions that are alike or differ in a few settings. What is asked decides, never the order. */
export class Latest<Question, Answer> {
  private readonly entries: { readonly question: Question; readonly answer: Answer }[] = [];

  /** The answer given before to the same question, else a new one by `make`. */
  get(question: Question, make: (question: Question) => Answer): Answer {
    // The latest first: it is asked again most often.
    for (let i = this.entries.length - 1; i >= 0; i -= 1) {
      const { question: asked, answer } = this.entries[i]!;
      if (isSame(asked, question)) return answer;
    }
    if (this.entries.length === KEPT) this.entries.shift();
    const answer = make(question);
    this.entries.push({ question, answer });
    return answer;
  }
}

/** Equal values; lists and records by what they hold. A key that is missing differs from one that is undefined. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  const [left, right] = [a as Readonly<Record<string, unknown>>, b as Readonly<Record<string, unknown>>];
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  let keys = 0;
  for (const key in left) {
    if (!(key in right) || !isSame(left[key], right[key])) return false;
    keys += 1;
  }
  return keys === Object.keys(right).length;
}
