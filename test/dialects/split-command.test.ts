// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${…} is what shells write
import { describe, expect, it } from 'vitest';
import { quoteCommand, splitCommand } from '../../src/dialects/split-command.ts';

const split = (text: string) => {
  const result = splitCommand(text, 'snug.yaml:1');
  return result.ok ? result.value : result.error.map(({ code, message }) => `${code}: ${message}`);
};

describe('splitCommand', () => {
  it.each<[text: string, words: string[]]>([
    ['', []],
    ['   ', []],
    ['python train.py', ['python', 'train.py']],
    ['python  train.py\t--lr 1 ', ['python', 'train.py', '--lr', '1']],
    ['a "b c" \'d e\' f\\ g', ['a', 'b c', 'd e', 'f g']],
    ['a --x="b c"d\'e\'', ['a', '--x=b cde']],
    ['a "" \'\'', ['a', '', '']],
    ["a 'it'\"'\"'s'", ['a', "it's"]],
    ['a "q\\"q" "b\\\\c" "d\\e"', ['a', 'q"q', 'b\\c', 'd\\e']],
    ['a \'b\\c\' "\\$x"', ['a', 'b\\c', '$x']],
    ["a $'x\\ty'", ['a', 'x\ty']],
    ['a \\\n  b \\\r\n  c', ['a', 'b', 'c']],
    ['a\\\n  b', ['a', 'b']],
    ['a\\\nb', ['ab']],
    ['a "b\\\nc"', ['a', 'bc']],
    ['a b # rest | of > it', ['a', 'b']],
    ['# first\na b\n\n# last\n', ['a', 'b']],
    ['a user/set#1000 "#x" \\#y', ['a', 'user/set#1000', '#x', '#y']],
    ['a $HOME/x ${OUT:-y} "$Z" \'$Q\' $1 $', ['a', '$HOME/x', '${OUT:-y}', '$Z', '$Q', '$1', '$']],
    ['a *.json data/[ab]? "*"', ['a', '*.json', 'data/[ab]?', '*']],
    ['a --bs {batch_size} {a,b}', ['a', '--bs', '{batch_size}', '{a,b}']],
    ['a \'{"r": 8, "on": true}\' \'<|end|>\'', ['a', '{"r": 8, "on": true}', '<|end|>']],
    ['a "x | y" \'(z)\' \\; \\&', ['a', 'x | y', '(z)', ';', '&']],
    ['a ~/x !y "é ü"', ['a', '~/x', '!y', 'é ü']],
  ])('%j', (text, words) => expect(split(text)).toEqual(words));

  it.each<[text: string, what: string]>([
    ['a | tee log', 'a pipe (|)'],
    ['a 2>&1', 'a redirection (>&)'],
    ['a > log', 'a redirection (>)'],
    ['a >> log', 'a redirection (>>)'],
    ['a < in', 'a redirection (<)'],
    ['a &', 'a start in the background (&)'],
    ['a && b', 'a second command (&&)'],
    ['a; b', 'a second command (;)'],
    ['(a)', 'a bracket outside quotes'],
    ['a $(date)', 'a command substitution ($(…))'],
    ['a "$(date)"', 'a command substitution ($(…))'],
    ['a `date`', 'a command substitution (`…`)'],
    ['a "`date`"', 'a command substitution (`…`)'],
    ['a b\nc d', 'a second line'],
    ['a b # why\nc d', 'a second line'],
  ])('%j needs a shell', (text, what) => {
    expect(split(text)).toEqual([`shell-syntax: ${what} needs a shell, and the command is started without one`]);
  });

  it.each([
    ['a "b', 'a quote " is not closed'],
    ["a 'b", "a quote ' is not closed"],
    ["a 'it\\'s'", "a quote ' is not closed"],
    ['a b\\', 'the backslash at the end has nothing to protect'],
    ['a “b”', '“ is a typographic quote, which no shell takes for one'],
  ])('%j is broken', (text, message) => expect(split(text)).toEqual([`shell-syntax: ${message}`]));

  it('says where, what and how instead', () => {
    expect(splitCommand('python a.py 2>&1 | tee log\n', 'snug.yaml:3')).toEqual({
      ok: false,
      error: [
        {
          code: 'shell-syntax',
          severity: 'error',
          message: 'a redirection (>&) needs a shell, and the command is started without one',
          location: 'snug.yaml:3',
          excerpt: 'python a.py 2>&1 | tee log',
          help: 'leave it out: the output of the run is kept in its run folder',
        },
      ],
    });
  });
});

describe('quoteCommand', () => {
  it.each<[words: string[], line: string]>([
    [['python', 'train.py', '--lr=2.0e-4', 'a/b:c,d@e+f'], 'python train.py --lr=2.0e-4 a/b:c,d@e+f'],
    [['a', 'b c', ''], "a 'b c' ''"],
    [['a', "it's"], "a 'it'\\''s'"],
    [['a', '$X', '*', '{"r": 8}', '#x', '!'], "a '$X' '*' '{\"r\": 8}' '#x' '!'"],
  ])('%j', (words, line) => expect(quoteCommand(words)).toBe(line));

  it('splits back into the same words, whatever is in them', () => {
    const alphabet = [...'ab-=/ \t\n"\'\\$`#*?![]{}()<>|&;~^%é,.:\r'];
    let seed = 20_261;
    const draw = (below: number): number => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed % below;
    };
    for (let round = 0; round < 2000; round += 1) {
      const words = Array.from({ length: 1 + draw(4) }, () =>
        Array.from({ length: draw(7) }, () => alphabet[draw(alphabet.length)]).join(''),
      );
      const line = quoteCommand(words);
      expect(splitCommand(line), line).toEqual({ ok: true, value: words });
    }
  });
});
