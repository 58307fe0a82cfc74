import { fail, ok, type Result } from '../../core/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileReference } from '../dialect.ts';
import { type Grammar, type ParsedFlags, parseFlags, type Token } from '../hf-argparser/grammar.ts';
import type { FileKey, ValueSources } from '../hf-argparser/values.ts';
import { lineAt, parseJson } from '../json-text.ts';

export const tokensFrom = (argv: readonly string[], from: number): readonly Token[] =>
  argv.slice(from).map((text, offset) => ({ text, index: from + offset }));

/** Where a new flag goes: after the last flag and its values, else after everything the script is given. */
export const appendPlace = (parsed: ParsedFlags, argv: readonly string[]): number =>
  parsed.flags.at(-1)?.end ?? argv.length;

/** `X.args` beside `X.py`, which HfArgumentParser reads before the command line: words split at blanks. */
export function readArgsFile(
  script: string | undefined,
  grammar: Grammar,
  context: ReadContext,
): ValueSources['argsFile'] {
  if (!script?.endsWith('.py')) return undefined;
  const path = script.replace(/\.py$/, '.args');
  const absolute = path.startsWith('/') ? path : `${context.cwd}/${path}`;
  if (context.files.info(absolute)?.kind !== 'file') return undefined;
  const source = context.source(path);
  if (!source.ok) return undefined;
  const { text } = source.value;
  const words = [...text.matchAll(/\S+/g)];
  const parsed = parseFlags(
    words.map((word, index) => ({ text: word[0], index })),
    grammar,
  );
  return { path, flags: parsed.flags.map((flag) => ({ ...flag, line: lineAt(text, words[flag.index]!.index) })) };
}

/** A JSON file of arguments: given alone, `python train.py args.json`. */
export function readJsonArguments(
  path: string,
  index: number,
  context: ReadContext,
): Result<{ readonly reference: FileReference; readonly keys: ReadonlyMap<string, FileKey> }> {
  const source = context.source(path);
  if (!source.ok) return source;
  const node = parseJson(source.value.text, path);
  if (!node.ok) return fail(...node.error);
  const keys = new Map<string, FileKey>();
  for (const member of node.value.members ?? []) {
    const line = lineAt(source.value.text, member.keyStart);
    keys.set(member.key, {
      value: member.node.value,
      line,
      ...(keys.has(member.key) ? { hazard: 'a duplicate key' } : {}),
    });
  }
  const reference: FileReference = {
    source: source.value,
    format: 'json',
    pointer: { kind: 'argv', index, before: '' },
  };
  return ok({ reference, keys });
}
