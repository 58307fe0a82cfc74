const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission is denied',
  EISDIR: 'it is a folder',
  ENOTFILE: 'it is not a plain file',
  ETOOBIG: 'it is too large',
  EBINARY: 'it holds NUL bytes, so it is no text',
  EILSEQ: 'it is not UTF-8 text',
  ELOOP: 'its links go round in a circle',
  EGZIP: 'it is a damaged gzip file',
};

/** What a code of a port's failed reading says to people. */
export const whyUnreadable = (code: string): string => REASONS[code] ?? code;
