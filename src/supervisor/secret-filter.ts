/** Takes known secrets out of a stream of bytes, each byte of one replaced by `*`, also where a chunk border cuts one. */
export interface SecretFilter {
  /** What may be written now. Bytes at the end that may be the beginning of a secret wait for the next chunk. */
  readonly take: (chunk: Uint8Array) => Uint8Array;
  /** What still waits. */
  readonly rest: () => Uint8Array;
}

const STAR = 0x2a;
const NOTHING = new Uint8Array(0);

/** Length of the longest end of `bytes` that begins a secret without being all of it. */
function openEnd(bytes: Buffer, secrets: readonly Buffer[]): number {
  let longest = 0;
  for (const secret of secrets) {
    for (let length = Math.min(secret.length - 1, bytes.length); length > longest; length--) {
      if (bytes.compare(secret, 0, length, bytes.length - length) === 0) longest = length;
    }
  }
  return longest;
}

export function createSecretFilter(texts: readonly string[]): SecretFilter {
  const secrets = texts.filter((text) => text !== '').map((text) => Buffer.from(text));
  let waiting: Buffer = Buffer.alloc(0);
  if (secrets.length === 0) return { take: (chunk) => chunk, rest: () => NOTHING };
  return {
    take(chunk) {
      const whole = waiting.length > 0 ? Buffer.concat([waiting, chunk]) : Buffer.from(chunk);
      for (const secret of secrets) {
        for (let at = whole.indexOf(secret); at >= 0; at = whole.indexOf(secret, at + secret.length)) {
          whole.fill(STAR, at, at + secret.length);
        }
      }
      const held = openEnd(whole, secrets);
      waiting = whole.subarray(whole.length - held);
      return whole.subarray(0, whole.length - held);
    },
    rest() {
      const last = waiting;
      waiting = Buffer.alloc(0);
      return last;
    },
  };
}
