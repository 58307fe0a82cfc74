/** Takes known secrets out of a stream of bytes, each byte of one replaced by `*`, also where a chunk border cuts one. */
export interface SecretFilter {
  /**
   * What may be written now; the chunk itself where there is nothing to change. Bytes at the end that may be the beginning of a secret
   * wait for the next one.
   */
  readonly take: (chunk: Buffer) => Buffer;
  /** What still waits. */
  readonly rest: () => Buffer;
}

const STAR = 0x2a;
const NOTHING = Buffer.alloc(0);

/** Length of the longest end of `bytes` that begins a secret without being all of it. */
function openEnd(bytes: Buffer, secrets: readonly Buffer[]): number {
  let longest = 0;
  for (const secret of secrets) {
    // Only where its first byte stands can it begin.
    const first = Math.max(0, bytes.length - secret.length + 1);
    for (let at = bytes.indexOf(secret[0]!, first); at >= 0; at = bytes.indexOf(secret[0]!, at + 1)) {
      const length = bytes.length - at;
      if (length > longest && bytes.compare(secret, 0, length, at) === 0) longest = length;
    }
  }
  return longest;
}

export function createSecretFilter(texts: readonly string[]): SecretFilter {
  const secrets = texts.filter((text) => text !== '').map((text) => Buffer.from(text));
  let waiting: Buffer = NOTHING;
  if (secrets.length === 0) return { take: (chunk) => chunk, rest: () => NOTHING };
  return {
    take(chunk) {
      let whole = waiting.length > 0 ? Buffer.concat([waiting, chunk]) : chunk;
      for (const secret of secrets) {
        for (let at = whole.indexOf(secret); at >= 0; at = whole.indexOf(secret, at + secret.length)) {
          // The chunk itself is shown as it came.
          if (whole === chunk) whole = Buffer.from(chunk);
          whole.fill(STAR, at, at + secret.length);
        }
      }
      const held = openEnd(whole, secrets);
      if (held === 0) {
        waiting = NOTHING;
        return whole;
      }
      // The chunk may be overwritten before the next one comes.
      waiting = Buffer.from(whole.subarray(whole.length - held));
      return whole.subarray(0, whole.length - held);
    },
    rest() {
      const last = waiting;
      waiting = NOTHING;
      return last;
    },
  };
}
