// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of a shell
import { describe, expect, it } from 'vitest';
import { walkShell } from '../../../src/dialects/shell/commands.ts';

/** Every command of a text as `[word|word]`, words that are not known in `<…>`. */
function commands(text: string, environment: Record<string, string> = {}, positional: string[] = []): string {
  return walkShell(text, environment, positional, () => undefined)
    .map(({ words }) => words.flatMap(({ fields }) => fields.map(({ text, known }) => (known ? text : `<${text}>`))))
    .map((words) => `[${words.join('|')}]`)
    .join(' ');
}

describe('words of a shell text', () => {
  it.each([
    ['run a b', '[run|a|b]'],
    ['run \'a b\' "c d" e\\ f', '[run|a b|c d|e f]'],
    ['run "" \'\'', '[run||]'],
    ['run a\\\n  b\\\nc', '[run|a|bc]'],
    ['run a \\\r\n b\r\n', '[run|a|b]'],
    ['run a # b', '[run|a]'],
    ['run a#b', '[run|a#b]'],
    ['# run\nrun a\n#run b', '[run|a]'],
    ['run a; run b && run c | run d &', '[run|a] [run|b] [run|c] [run|d]'],
    ['run a > out.txt 2>&1 b', '[run|a|b]'],
    ['run a &> all.log < in', '[run|a]'],
    ['run <<EOF b\nnot read\nEOF\nrun c', '[run|b] [run|c]'],
    ["run <<-'END'\n\tnot read\n\tEND\nrun c", '[run] [run|c]'],
    ['(run a)', '[run|a]'],
    ['run <(cat x)', '[run|<<(cat x)>]'],
    ['run "$(date +%F)/x"', '[run|<$(date +%F)/x>]'],
    ['run `date`', '[run|<`date`>]'],
    ['run "open', '[run|open]'],
    ['', ''],
  ])('%j', (text, expected) => expect(commands(text)).toBe(expected));
});

describe('what a variable stands for', () => {
  it.each([
    ['A=1; run $A "$A" ${A}x', '[run|1|1|1x]'],
    ['A="x y"; run $A "$A"', '[run|x|y|x y]'],
    ['A=1 run $A', '[A=1|run]'],
    ['export A=1 B="2 3"; run $A "$B"', '[run|1|2 3]'],
    ['run ${A:-4} "${B-"5 6"}"', '[run|4|5 6]'],
    ['A=; run ${A:-4} ${A-5}x', '[run|4|x]'],
    [': "${A:=7}"; run $A', '[run|7]'],
    ['run ${A:+yes} ${B:?missing}', '[run|<${B:?missing}>]'],
    ['A=1; run ${A:+yes}', '[run|yes]'],
    ['run $A "$A"', '[run|]'],
    ['run $SLURM_NTASKS', '[run|<$SLURM_NTASKS>]'],
    ['A=$(nproc); run --n=$A', '[run|<--n=$A>]'],
    ['A=(x "y z"); A+=(w); run "${A[@]}" ${A[1]} ${#A[@]}', '[run|x|y z|w|y|z|3]'],
    ['A=(x $(f)); run "${A[@]}"', '[run|<${A[@]}>]'],
    ['A=2; B=$((A * 3 + 1)); run $B $((10 / $B))', '[run|7|1]'],
    ['run $((A + 1))', '[run|<$((A + 1))>]'],
    ['A=a; A+=b; run $A', '[run|ab]'],
    ['A=1; unset A; run "$A"', '[run|]'],
    ['A=long.txt; run ${A%.txt}', '[run|<${A%.txt}>]'],
    ['run "$1" "${2:-9}" $#', '[run|one|9|1]'],
    ['run "$@" x', '[run|one|x]'],
    ['set -- a b; shift; run "$@"', '[run|b]'],
    ['eval "run $1"', '[run|one]'],
    ["run '$HOME' \\$HOME", '[run|$HOME|$HOME]'],
    ['run $HOME', '[run|/home/u]'],
  ])('%s', (text, expected) => expect(commands(text, { HOME: '/home/u' }, ['one'])).toBe(expected));
});

describe('blocks', () => {
  it.each([
    ['if [ -f x ]; then A=1; else A=2; fi; run $A', '[run|<$A>]'],
    ['if true; then A=1; run $A; fi', '[run|1]'],
    ['A=3; if true; then A=1; else run $A; fi', '[run|3]'],
    ['[ -z "$A" ] && A=4\nrun $A', '[run|<$A>]'],
    ['cd x && A=4 && run $A', '[run|4]'],
    ['for A in 1 2; do run $A; done', '[run|<$A>]'],
    ['for A in 1; do run $A; done', '[run|1]'],
    ['while read -r A; do run $A; done < list', '[run|<$A>]'],
    ['case $X in a|b) A=1;; *) A=2; run $A;; esac; run $A', '[run|2] [run|<$A>]'],
    ['go() { run "$A"; }\nA=5\ngo', '[run|] [go]'],
    ['function go { run a; }', '[run|a]'],
    ['{ A=6; }; run $A', '[run|6]'],
    ['read A; run $A', '[run|<$A>]'],
  ])('%s', (text, expected) => expect(commands(text)).toBe(expected));

  it('reads the variables of a file that is sourced, and starts nothing of it', () => {
    const walked = walkShell('source conf.env; run $A', {}, [], (path) =>
      path === 'conf.env' ? 'A=8\nrun b' : undefined,
    );
    expect(walked.map(({ words }) => words.flatMap(({ fields }) => fields.map(({ text }) => text)))).toEqual([
      ['run', '8'],
    ]);
  });
});
