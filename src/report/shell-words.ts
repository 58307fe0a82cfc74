/** A word a POSIX shell takes as it is. */
const PLAIN = /^[\w@%+=:,./-]+$/;

/** A command line for pasting into a shell: words that need it in single quotes, everything else as typed. */
export const shellWords = (argv: readonly string[]): string =>
  argv.map((word) => (PLAIN.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
