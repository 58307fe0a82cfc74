import { countNumbers, readWrapped } from './allocator-report.ts';
import type { EvidenceLine, Resource } from './failure.ts';
import { createLineCounter, createLineSplitter, type Piece } from './line-splitter.ts';
import { linesOfRecord } from './log-record.ts';
import { type CleanLine, normaliseLine } from './normalise.ts';
import { placeOf } from './phase.ts';
import { createProgressReader } from './progress.ts';
import { exceptionHead, type Match, matchLine, mayMatch, type Signature } from './signatures/index.ts';
import { createTailKeeper } from './tail.ts';
import { createTracebackReader, type TracebackReader } from './traceback.ts';

export type OutputStream = 'stdout' | 'stderr';

/** A memory line after which a rank is as good as dead, while others may wait for it in a collective. */
export interface FatalHit {
  readonly signature: string;
  readonly resource: Resource;
  readonly line: EvidenceLine;
}

/** What a watcher has gathered; same for every way of cutting the same output into chunks. */
export interface WatchedOutput {
  readonly lines: readonly EvidenceLine[];
  readonly tail: readonly string[];
  /** Signs of training steps: bars that moved on, new losses. */
  readonly stepsSeen: number;
  readonly finished?: boolean;
}

/** Where a skip ends: behind a line, at a `\r` after which a new refresh of a bar begins, or in the middle of a text. */
export interface SkippedTo {
  readonly stream: OutputStream;
  readonly place: 'line' | 'refresh' | 'inside';
}

/** Looks at both streams of a run as they come. */
export interface LineWatcher {
  /** Takes bytes; returns the fatal line they brought, also when it is not yet ended by a newline. */
  readonly push: (stream: OutputStream, chunk: Uint8Array) => FatalHit | undefined;
  /** Passes over lines that were not looked at; what is open ends there. `to`: without it, behind a line. */
  readonly skip: (lines: number, to?: SkippedTo) => void;
  /** How many lines have begun. */
  readonly linesSeen: () => number;
  /** Takes the unfinished last lines as lines. */
  readonly end: () => FatalHit | undefined;
  /** The first fatal line that training has not gone on after. */
  readonly fatal: () => FatalHit | undefined;
  /** Steps of training so far: what a bar shows, else how many signs of one there were. */
  readonly step: () => number;
  /** Steps the run is going to make; undefined: nothing has said. */
  readonly plannedSteps: () => number | undefined;
  readonly evidence: () => WatchedOutput;
}

/** Of each signature, so that a flood of one (a bad row skipped with an error, a thousand times) hides no other. */
const FIRST_KEPT = 8;
const LAST_KEPT = 2;
/** The longest known message, hard-wrapped at 80 columns, and the rows of the asynchronous allocator. */
const CONTINUATION_LINES = 16;
const CONTINUATION_CHARS = 3000;
const ROW_FIGURES = 4;
/** One rank may print the step before, after another has failed; two steps need every rank. */
const STEPS_THAT_PROVE_PROGRESS = 2;
const MOST_PREFIXES_KEPT = 512;

/** A date and a time near the beginning of a line. */
const STAMP = /^.{0,40}?(\d{4}[-/]\d\d[-/]\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)/;

function timeOf(stamp: string | undefined): Pick<EvidenceLine, 'timeMs'> {
  const timeMs =
    stamp === undefined ? Number.NaN : Date.parse(`${stamp.replace(/\//g, '-').replace(',', '.').replace(' ', 'T')}Z`);
  return Number.isNaN(timeMs) ? {} : { timeMs };
}

interface Found {
  line: EvidenceLine;
  /** The message with every line that may belong to it. */
  joined: string;
  readonly signature: Signature;
  readonly order: number;
  readonly advancesBefore: number;
  /** Lines that may still belong to the message. */
  open: number;
}

const isFatal = (signature: Signature, weak: boolean): boolean =>
  !weak && signature.role === 'cause' && ['vram', 'host_ram', 'shm'].includes(signature.resource);

export function createLineWatcher(): LineWatcher {
  const counter = createLineCounter();
  const progress = createProgressReader();
  const tail = createTailKeeper();
  const readers = new Map<string, TracebackReader>();
  const prefixesSeen = new Set<string>();
  const shelves = new Map<string, { readonly first: Found[]; readonly last: Found[] }>();
  let order = 0;
  const seen = new Set<string>();
  const openMessages = new Map<string, Found>();
  let newHit: Found | undefined;

  const readerOf = (key: string): TracebackReader => {
    const reader = readers.get(key) ?? createTracebackReader();
    readers.set(key, reader);
    return reader;
  };
  const weakOf = (line: CleanLine, match: Match): boolean =>
    match.standing === 'weak' || (line.weakPrefix !== '' && !prefixesSeen.has(line.weakPrefix));

  const keep = (found: Found): void => {
    const shelf = shelves.get(found.signature.id) ?? { first: [], last: [] };
    shelves.set(found.signature.id, shelf);
    if (shelf.first.length < FIRST_KEPT) shelf.first.push(found);
    else {
      shelf.last.push(found);
      if (shelf.last.length > LAST_KEPT) shelf.last.shift();
    }
  };
  const all = (): Found[] =>
    [...shelves.values()]
      .flatMap(({ first, last }) => [...first, ...last])
      .sort((left, right) => left.order - right.order);
  const goesOn = (found: Found): boolean => progress.advances() - found.advancesBefore >= STEPS_THAT_PROVE_PROGRESS;

  /** Adds a line to the message before it, when it can be its continuation. */
  const continueMessage = (key: string, line: CleanLine): boolean => {
    const found = openMessages.get(key);
    if (!found) return false;
    const startsSomething =
      exceptionHead(line.text) !== undefined ||
      line.bar !== undefined ||
      /^\s*(?:File "|Traceback|\*\*\*)/.test(line.text);
    if (startsSomething || found.open <= 0 || found.joined.length > CONTINUATION_CHARS) {
      openMessages.delete(key);
      return false;
    }
    found.open--;
    found.joined += `\n${line.text}`;
    // Only what adds a figure belongs to the message; whatever else a rank says next does not.
    if (figuresIn(found, found.joined) > figuresIn(found, found.line.text)) {
      found.line = { ...found.line, text: found.joined };
    }
    if (isComplete(found)) openMessages.delete(key);
    return true;
  };
  const figuresIn = (found: Found, text: string): number =>
    found.signature.read ? countNumbers(readWrapped(text, found.signature.read)) : 0;
  const isComplete = (found: Found): boolean => {
    const { read, role, rows } = found.signature;
    if (!read || role === 'recovered') return true;
    if (rows) return figuresIn(found, found.line.text) >= ROW_FIGURES;
    // The last figure of every wording.
    return readWrapped(found.line.text, read).reservedUnallocatedBytes !== undefined;
  };

  let stamp: string | undefined;
  const take = (stream: OutputStream, piece: Piece): void => {
    const inside = piece.text.startsWith('{"') ? linesOfRecord(piece.text) : undefined;
    if (!inside) takeLine(stream, piece);
    // Loggers that write JSON put a whole traceback into one record.
    else for (const text of inside) takeLine(stream, { ...piece, text });
  };
  const takeLine = (stream: OutputStream, piece: Piece): void => {
    const line = normaliseLine(piece.text);
    const key = `${stream}/${line.rank ?? ''}`;
    stamp = STAMP.exec(line.shown)?.[1] ?? stamp;
    tail.take(key, line);
    progress.take(line);
    const reader = readerOf(key);
    if (line.text === '') return;
    const match = piece.continued ? undefined : matchLine(line);
    if (!match) {
      if (!reader.take(line.text)) {
        if (!continueMessage(key, line) && reader.open() && !line.indented) reader.close();
      } else openMessages.delete(key);
    } else {
      const { signature } = match;
      const weak = weakOf(line, match);
      openMessages.delete(key);
      // A warning in the middle of a traceback does not end it; an exception does.
      const endsTraceback = exceptionHead(line.text) !== undefined;
      const place = placeOf(endsTraceback ? reader.frames() : []);
      if (endsTraceback) reader.close();
      const identity = `${signature.id}/${line.rank ?? ''}/${line.text}`;
      if (!seen.has(identity) || goesOnSince(identity)) {
        if (seen.size < 4096) seen.add(identity);
        const found: Found = {
          line: {
            line: piece.line,
            text: line.text,
            rank: line.rank,
            stream,
            signature: signature.id,
            ...timeOf(stamp),
            ...(place.phase === 'unknown' ? {} : { phase: place.phase }),
            ...(place.traits.length === 0 ? {} : { traits: place.traits }),
            ...(progress.steps() === 0 ? {} : { stepsBefore: progress.steps() }),
            ...(weak ? { weak } : {}),
          },
          joined: line.text,
          signature,
          order: order++,
          advancesBefore: progress.advances(),
          open: CONTINUATION_LINES,
        };
        keep(found);
        if (!isComplete(found)) openMessages.set(key, found);
        if (!newHit && isFatal(signature, weak)) newHit = found;
      }
    }
    if (line.weakPrefix !== '' && prefixesSeen.size < MOST_PREFIXES_KEPT) prefixesSeen.add(line.weakPrefix);
  };
  const goesOnSince = (identity: string): boolean => {
    const found = all().findLast(
      (one) => `${one.signature.id}/${one.line.rank ?? ''}/${one.line.text.split('\n')[0]}` === identity,
    );
    return found !== undefined && goesOn(found);
  };

  const splitters = {
    stdout: createLineSplitter(counter, (piece) => take('stdout', piece)),
    stderr: createLineSplitter(counter, (piece) => take('stderr', piece)),
  };
  const hitOf = (found: Found): FatalHit => ({
    signature: found.signature.id,
    resource: found.signature.resource,
    line: found.line,
  });
  const takeHit = (): FatalHit | undefined => {
    const hit = newHit && hitOf(newHit);
    newHit = undefined;
    return hit;
  };
  /** A dying rank may never end its last line; seen here, but written down only once it is whole. */
  const unfinishedHit = (stream: OutputStream): FatalHit | undefined => {
    const piece = splitters[stream].pending();
    if (!piece || piece.continued || !mayMatch(piece.text)) return undefined;
    const line = normaliseLine(piece.text);
    const match = matchLine(line);
    if (!match || !isFatal(match.signature, weakOf(line, match))) return undefined;
    const evidence = { line: piece.line, text: line.text, rank: line.rank, stream, signature: match.signature.id };
    return { signature: match.signature.id, resource: match.signature.resource, line: evidence };
  };
  const standingFatal = (): FatalHit | undefined => {
    const found = all().find((one) => isFatal(one.signature, one.line.weak === true) && !goesOn(one));
    return found ? hitOf(found) : (unfinishedHit('stderr') ?? unfinishedHit('stdout'));
  };

  return {
    push(stream, chunk) {
      counter.enter(stream, chunk);
      splitters[stream].push(chunk);
      return takeHit() ?? unfinishedHit(stream);
    },
    skip(lines, to) {
      if (to) splitters[to.stream].breakOff(to.place === 'inside');
      counter.skip(lines, to && to.place !== 'line' ? to.stream : undefined);
      // A flood of one stream takes no traceback of the other apart.
      const isCutOff = (key: string): boolean => to === undefined || key.startsWith(`${to.stream}/`);
      for (const key of [...openMessages.keys()].filter(isCutOff)) openMessages.delete(key);
      for (const [key, reader] of readers) if (isCutOff(key)) reader.close();
    },
    linesSeen: counter.seen,
    end() {
      splitters.stdout.end();
      splitters.stderr.end();
      return takeHit();
    },
    fatal: standingFatal,
    step: () => progress.steps() || progress.advances(),
    plannedSteps: progress.planned,
    evidence: () => ({
      lines: all().map((found) => (goesOn(found) ? { ...found.line, followedByProgress: true } : found.line)),
      tail: tail.lines(),
      stepsSeen: progress.advances(),
      ...(progress.finished() ? { finished: true } : {}),
    }),
  };
}
