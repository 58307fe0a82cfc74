import { type Diagnostic, error } from '../../core/index.ts';
import type { Written } from '../dialect.ts';
import { type Grammar, type ParsedFlags, parseFlags } from './grammar.ts';
import { layerValues, type Values } from './values.ts';
import { cannot, wrote } from './written.ts';

/** The arguments of a program that takes nothing but flags. */
export interface FlagLaunch {
  readonly values: Values;
  readonly parsed: ParsedFlags;
  /** Options its parser would stop at. */
  readonly problems: readonly Diagnostic[];
  /** Turns a flag without a value (`store_true`) on or off; the first of `names` that is typed counts, else the first. */
  readonly switchTo: (on: boolean, ...names: readonly string[]) => Written;
}

/** Reads `argv.slice(argsFrom)` as flags; new ones go behind the last. */
export function readFlags(argv: readonly string[], argsFrom: number, grammar: Grammar): FlagLaunch {
  const tokens = argv.slice(argsFrom).map((text, offset) => ({ text, index: argsFrom + offset }));
  const parsed = parseFlags(tokens, grammar);
  const appendAt = parsed.flags.at(-1)?.end ?? argv.length;
  const values = layerValues({ argv, flags: parsed.flags, appendAt });
  const switchTo = (on: boolean, ...names: readonly string[]): Written => {
    const typed = parsed.flags.filter((flag) => names.includes(flag.key));
    if (on) {
      const [name] = names as readonly [string];
      return typed.length > 0 ? wrote() : wrote({ kind: 'insert', at: appendAt, key: name, tokens: [`--${name}`] });
    }
    if (typed.some((flag) => flag.values.length > 0)) return cannot(`${typed[0]!.spelling} is followed by a value`);
    return wrote(...typed.map((flag) => ({ kind: 'remove', index: flag.index }) as const));
  };
  return {
    values,
    parsed,
    problems: parsed.problems.map(({ message, index, help }) =>
      error('bad-option', message, { location: `argv[${index}]`, help }),
    ),
    switchTo,
  };
}
