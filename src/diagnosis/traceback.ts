import type { Frame } from './phase.ts';

const MOST_FRAMES = 200;
const HEAD = /^(?:\w+ )?Traceback \(most recent call last\)/;
const FRAME = /^\s*File "([^"]+)", line \d+(?:, in (.+))?$/;
// rich: `/path/trainer.py:3307 in training_step`
const RICH_FRAME = /^(\S+\.py):\d+ in (\S+)\s*$/;
const RICH_CODE = /^\s*❱\s*\d+\s*[│|]?\s*(.*)$/;
// IPython: `File ~/lib/trainer.py:88, in Trainer.train(self, …)`, `/lib/trainer.py in train(self)`, `Cell In[5], line 3`
const IPYTHON_FRAME = /^(?:File )?(\S+\.py)(?::\d+,?)? in (?:[\w.<>]*\.)?([\w<>]+)\(/;
const IPYTHON_CELL = /^(?:Cell |Input )?In ?\[\d+\]/;
const IPYTHON_CODE = /^-+> ?\d+\s+(\S.*)$/;
const CARETS = /^[\s~^]+$/;

/** Follows the tracebacks of one rank line by line. */
export interface TracebackReader {
  /** Takes a line; `true` when it is part of a traceback (not its last line, the exception). */
  readonly take: (text: string) => boolean;
  /** Frames of the traceback that stands above the current line, outermost first. */
  readonly frames: () => readonly Frame[];
  /** `true` between a traceback's head and the exception that ends it. */
  readonly open: () => boolean;
  /** The exception's own line was seen: what follows is no longer this traceback. */
  readonly close: () => void;
}

export function createTracebackReader(): TracebackReader {
  let frames: Frame[] = [];
  let open = false;
  const begin = (): void => {
    frames = [];
    open = true;
  };
  const push = (frame: Frame): void => {
    if (!open) begin();
    frames.push(frame);
    // The head names the phase's frame, the end the operation; the middle of a deep recursion says neither.
    if (frames.length > MOST_FRAMES) frames.splice(MOST_FRAMES / 2, 1);
  };
  const addCode = (code: string): void => {
    const last = frames.at(-1);
    if (last && last.code === '') frames[frames.length - 1] = { ...last, code: code.trim() };
  };
  return {
    take(text) {
      if (HEAD.test(text)) {
        begin();
        return true;
      }
      const frame = text.includes('File "') ? FRAME.exec(text) : null;
      if (frame) {
        push({ file: frame[1]!, func: frame[2] ?? '', code: '' });
        return true;
      }
      const rich = text.includes('.py:') ? RICH_FRAME.exec(text) : null;
      if (rich) {
        push({ file: rich[1]!, func: rich[2]!, code: '' });
        return true;
      }
      const cell = text.includes(' in ') || text.includes('In') ? IPYTHON_FRAME.exec(text) : null;
      if (cell) {
        push({ file: cell[1]!, func: cell[2]!, code: '' });
        return true;
      }
      if (IPYTHON_CELL.test(text)) {
        push({ file: '<cell>', func: '<module>', code: '' });
        return true;
      }
      if (!open) return false;
      const arrow = IPYTHON_CODE.exec(text);
      if (arrow) {
        addCode(arrow[1]!);
        return true;
      }
      // The lines around the one that is marked.
      if (/^\s*\d+(?:\s|$)/.test(text)) return true;
      const richCode = RICH_CODE.exec(text);
      if (richCode) {
        addCode(richCode[1]!);
        return true;
      }
      if (CARETS.test(text)) return true;
      if (/^\s{2,}\S/.test(text)) {
        addCode(text);
        return true;
      }
      return false;
    },
    frames: () => frames,
    open: () => open,
    close: () => {
      open = false;
    },
  };
}
