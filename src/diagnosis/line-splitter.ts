/** Longest text kept while waiting for a line end, in characters; a progress bar or a base64 blob may never end its line. */
export const PENDING_LIMIT = 64 * 1024;
/** Carried over when a pending text is cut, so that a message across the cut is still seen whole. */
export const PENDING_OVERLAP = 4 * 1024;

/** One piece of a stream: a line, a `\r` refresh of one, or a slice of an over-long one. */
export interface Piece {
  readonly text: string;
  /** `true`: the piece does not begin where the line began. */
  readonly continued: boolean;
  /** Its number among the lines of the output, 1-based. */
  readonly line: number;
}

/** Counts output lines over both streams exactly as `output.log` writes them: a change of stream inside a line starts a new one. */
export interface LineCounter {
  readonly enter: (stream: string, chunk: Uint8Array) => void;
  readonly newline: () => void;
  readonly current: () => number;
  /** Passes over whole lines, and into one of `stream` where it is given. */
  readonly skip: (lines: number, stream?: string) => void;
  /** Lines that have begun. */
  readonly seen: () => number;
}

const NEWLINE = 0x0a;

export function createLineCounter(): LineCounter {
  let line = 1;
  let owner = '';
  let atLineStart = true;
  return {
    enter(stream, chunk) {
      if (chunk.length === 0) return;
      if (!atLineStart && stream !== owner) line++;
      owner = stream;
      atLineStart = chunk[chunk.length - 1] === NEWLINE;
    },
    newline: () => {
      line++;
    },
    current: () => line,
    skip: (lines, stream) => {
      line += lines;
      atLineStart = stream === undefined;
      owner = stream ?? owner;
    },
    seen: () => (atLineStart ? line - 1 : line),
  };
}

export interface LineSplitter {
  readonly push: (chunk: Uint8Array) => void;
  /** Emits what is open; some bytes are left out. `inside`: what comes next begins in the middle of a text. */
  readonly breakOff: (inside: boolean) => void;
  /** What has come since the last line end. */
  readonly pending: () => Piece | undefined;
  /** Emits the unfinished last line. */
  readonly end: () => void;
}

/**
 * Turns the bytes of one stream into pieces, whatever the chunk borders: UTF-8 is decoded incrementally (a bar glyph has three
 * bytes), `\r`, `\n` and `\r\n` end a piece, an over-long one is cut at fixed places.
 */
export function createLineSplitter(counter: LineCounter, emit: (piece: Piece) => void): LineSplitter {
  const decoder = new TextDecoder('utf-8');
  let text = '';
  let start = 1;
  let continued = false;

  const add = (more: string): void => {
    if (more === '') return;
    if (text === '') start = counter.current();
    text += more;
    while (text.length >= PENDING_LIMIT) {
      emit({ text: text.slice(0, PENDING_LIMIT), continued, line: start });
      text = text.slice(PENDING_LIMIT - PENDING_OVERLAP);
      continued = true;
    }
  };
  const finish = (): void => {
    if (text !== '') emit({ text, continued, line: start });
    text = '';
    continued = false;
  };
  const feed = (decoded: string): void => {
    let from = 0;
    for (const end of decoded.matchAll(/[\r\n]/g)) {
      add(decoded.slice(from, end.index));
      finish();
      if (end[0] === '\n') counter.newline();
      from = end.index + 1;
    }
    add(decoded.slice(from));
  };

  return {
    push: (chunk) => feed(decoder.decode(chunk, { stream: true })),
    breakOff: (inside) => {
      feed(decoder.decode());
      finish();
      continued = inside;
    },
    pending: () => (text === '' ? undefined : { text, continued, line: start }),
    end: () => {
      feed(decoder.decode());
      finish();
    },
  };
}
