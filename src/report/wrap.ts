import { stripVTControlCharacters } from 'node:util';

/** Columns a text takes, colours not counted. */
export const columnsOf = (text: string): number => [...stripVTControlCharacters(text)].length;

/**
 * Breaks a text at spaces so that no line is wider than `width`; further lines are indented by `hang` spaces. A word that is
 * wider by itself (a path, a command) stays whole: broken, it could not be copied.
 */
export function wrap(text: string, width: number, hang: number): string {
  const indent = ' '.repeat(hang);
  return text
    .split('\n')
    .map((line) => {
      const lead = /^ */.exec(line)![0];
      const lines: string[] = [];
      let current = lead;
      for (const word of line.slice(lead.length).split(' ')) {
        const empty = current.trim() === '';
        const joined = empty ? current + word : `${current} ${word}`;
        if (!empty && columnsOf(joined) > width) {
          lines.push(current);
          current = indent + word;
        } else current = joined;
      }
      return [...lines, current].join('\n');
    })
    .join('\n');
}
