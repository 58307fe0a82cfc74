import { stripVTControlCharacters } from 'node:util';

/** East Asian letters and punctuation, which take two columns and may be followed by a line break. */
const WIDE =
  /[\u1100-\u115f\u2e80-\u303e\u3041-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe4f\uff00-\uff60\uffe0-\uffe6]/u;

/** Columns a text takes, colours not counted. */
export function columnsOf(text: string): number {
  const letters = [...stripVTControlCharacters(text)];
  return letters.length + (WIDE.test(text) ? letters.filter((letter) => WIDE.test(letter)).length : 0);
}

/** Pieces between which a line may break, each with the space (or nothing) that joins it to the one before. */
function piecesOf(line: string): readonly (readonly [join: string, piece: string])[] {
  const words = line.split(' ').map((word) => [' ', word] as const);
  if (!WIDE.test(line)) return words;
  return words.flatMap(([join, word]) => {
    // Closing punctuation never begins a line.
    const parts = word.split(/(?<=[\u2e80-\u303e\u3041-\ua4cf\uff00-\uff60])(?![，。；：、）！？」』】》])/u);
    return parts.map((part, index) => [index === 0 ? join : '', part] as const);
  });
}

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
      for (const [join, word] of piecesOf(line.slice(lead.length))) {
        const empty = current.trim() === '';
        const joined = empty ? current + word : `${current}${join}${word}`;
        if (!empty && columnsOf(joined) > width) {
          lines.push(current);
          current = indent + word;
        } else current = joined;
      }
      return [...lines, current].join('\n');
    })
    .join('\n');
}
