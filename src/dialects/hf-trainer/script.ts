import type { ReadContext } from '../contract.ts';
import type { Target } from '../dialect.ts';

/** What a script's text says about its arguments and trainer. Nothing of it is executed. */
export interface ScriptFacts {
  /** As the launch names it; undefined: no script, or one that cannot be read here. */
  readonly path: string | undefined;
  readonly text: string | undefined;
  /** Whether the text holds `word` as a whole word. */
  readonly mentions: (word: string) => boolean;
  /** 1-based line and groups of the only match of `pattern`; undefined: none, or several that differ. */
  readonly only: (pattern: RegExp) => { readonly line: number; readonly groups: readonly string[] } | undefined;
}

/** Reads the script that a launcher starts, as text. A module is looked for below the working directory. */
export function readScript(target: Target | undefined, context: ReadContext): ScriptFacts {
  const path = scriptPath(target, context);
  const source = path === undefined ? undefined : context.source(path);
  const text = source?.ok ? withoutComments(source.value.text) : undefined;
  return {
    path,
    text,
    mentions: (word) => text !== undefined && new RegExp(`(?<![\\w])${word}(?![\\w])`).test(text),
    only: (pattern) => (text === undefined ? undefined : onlyMatch(text, pattern)),
  };
}

function scriptPath(target: Target | undefined, context: ReadContext): string | undefined {
  if (target?.form === 'script') return target.name;
  if (target?.form !== 'module') return undefined;
  const base = target.name.replaceAll('.', '/');
  return [`${base}.py`, `${base}/__main__.py`].find((path) => {
    const absolute = path.startsWith('/') ? path : `${context.cwd}/${path}`;
    return context.files.info(absolute)?.kind === 'file';
  });
}

/** Whole-line comments go, so that a commented-out setting is not taken for one; line numbers stay. */
const withoutComments = (text: string): string => text.replace(/^[ \t]*#.*$/gm, '');

function onlyMatch(text: string, pattern: RegExp): { line: number; groups: readonly string[] } | undefined {
  const matches = [...text.matchAll(new RegExp(pattern.source, 'g'))];
  const distinct = new Set(matches.map((match) => JSON.stringify(match.slice(1))));
  const first = matches[0];
  if (!first || distinct.size !== 1) return undefined;
  return { line: text.slice(0, first.index).split('\n').length, groups: first.slice(1).map((group) => group ?? '') };
}
