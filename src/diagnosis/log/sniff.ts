/** What the first bytes of a file say it is. */
export type LogForm =
  | { readonly form: 'text' }
  | { readonly form: 'utf-16le' | 'utf-16be' }
  | { readonly form: 'json' }
  /** `what`: a word for people. */
  | { readonly form: 'binary'; readonly what: string };

const MAGIC: readonly (readonly [prefix: readonly number[], what: string])[] = [
  [[0x7f, 0x45, 0x4c, 0x46], 'a program (ELF)'],
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive (a PyTorch checkpoint is one)'],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed with zstd; unpack it first: zstd -dc FILE | snug diagnose -'],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'compressed with xz; unpack it first: xz -dc FILE | snug diagnose -'],
  [[0x42, 0x5a, 0x68], 'compressed with bzip2; unpack it first: bzip2 -dc FILE | snug diagnose -'],
  [[0x89, 0x50, 0x4e, 0x47], 'a picture (PNG)'],
  [[0xff, 0xd8, 0xff], 'a picture (JPEG)'],
  [[0x25, 0x50, 0x44, 0x46], 'a PDF'],
  [[0x80, 0x02], 'a Python pickle'],
  [[0x80, 0x04], 'a Python pickle'],
  [[0x80, 0x05], 'a Python pickle'],
  [[0x53, 0x51, 0x4c, 0x69, 0x74, 0x65], 'a database (SQLite)'],
];

/** Share of control characters (NUL and the like, not tab, line end or escape) above which a file is no text. */
const MOST_CONTROLS = 0.03;

function utf16Of(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return 'utf-16le';
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return 'utf-16be';
  // Without a mark: every other byte of western text is NUL.
  const pairs = Math.floor(Math.min(bytes.length, 4096) / 2);
  if (pairs < 8) return undefined;
  let [even, odd] = [0, 0];
  for (let pair = 0; pair < pairs; pair++) {
    if (bytes[2 * pair] === 0) even++;
    if (bytes[2 * pair + 1] === 0) odd++;
  }
  if (odd > 0.6 * pairs && even < 0.1 * pairs) return 'utf-16le';
  return even > 0.6 * pairs && odd < 0.1 * pairs ? 'utf-16be' : undefined;
}

const isControl = (byte: number): boolean => byte < 0x09 || (byte > 0x0d && byte < 0x20 && byte !== 0x1b);

/** Looks at the beginning of a file; 4 KiB are enough. */
export function sniffLog(bytes: Uint8Array): LogForm {
  const known = MAGIC.find(([prefix]) => prefix.every((byte, index) => bytes[index] === byte));
  if (known) return { form: 'binary', what: known[1] };
  if (String.fromCharCode(...bytes.subarray(257, 262)) === 'ustar')
    return { form: 'binary', what: 'a tar archive; unpack it first' };
  const utf16 = utf16Of(bytes);
  if (utf16) return { form: utf16 };
  const controls = bytes.reduce((count, byte) => count + (isControl(byte) ? 1 : 0), 0);
  if (controls > MOST_CONTROLS * bytes.length) return { form: 'binary', what: 'binary data' };
  const text = new TextDecoder().decode(bytes).trimStart();
  // A notebook; a log of JSON lines has a whole record in its first line.
  return /^\{\s*"(?:cells|metadata|nbformat)"/.test(text) ? { form: 'json' } : { form: 'text' };
}
