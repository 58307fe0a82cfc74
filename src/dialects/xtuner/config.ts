import { ok, type Result } from '../../core/index.ts';
import type { Origin } from '../../spec/index.ts';
import type { LaunchSource, ReadContext } from '../contract.ts';
import type { FileValue } from '../dialect.ts';
import { type CallArgument, callsOf, readLiteral } from '../hf-trainer/python-literals.ts';
import { lineAt } from '../json-text.ts';

/** A value of the config and where it stands; `value` undefined: an expression, which is not computed here. */
export interface ConfigValue {
  readonly value: FileValue | undefined;
  readonly origin: Origin;
}

/** A config of XTuner read as text: it is a program, and nothing of it is run. */
export interface XtunerConfig {
  readonly source: LaunchSource;
  /** `name = value` at the left margin. */
  readonly variable: (name: string) => ConfigValue | undefined;
  /** The variables, by name. */
  readonly variables: ReadonlyMap<string, ConfigValue>;
  /** Arguments of the one `dict(type=TYPE, …)`; undefined: none, or several. */
  readonly dictOf: (type: string) => ReadonlyMap<string, ConfigValue> | undefined;
  /** Whether the text names `word`. */
  readonly mentions: (word: string) => boolean;
}

export function readConfig(path: string, context: ReadContext): Result<XtunerConfig> {
  const source = context.source(path);
  if (!source.ok) return source;
  const text = source.value.text.replace(/^[ \t]*#.*$/gm, '');
  const at = (offset: number): Origin => ({ kind: 'file', path, line: lineAt(text, offset) });
  const variables = new Map<string, ConfigValue>();
  for (const { index, groups } of text.matchAll(/^(?<name>[A-Za-z_]\w*)[ \t]*(?<by>\*?)=(?!=)[ \t]*(?<text>.*)$/gm)) {
    const { name, by, text: written } = groups as { name: string; by: string; text: string };
    const own = literalOf(written, variables);
    const before = variables.get(name)?.value;
    const product = typeof before === 'number' && typeof own === 'number' ? before * own : undefined;
    variables.set(name, { value: by === '*' ? product : own, origin: at(index) });
  }
  const dicts = callsOf(text, 'dict').map((call) => new Map(call.flatMap((each) => named(each))));
  return ok({
    source: source.value,
    variables,
    variable: (name) => variables.get(name),
    dictOf: (type) => {
      const found = dicts.filter(
        (dict) => dict.get('type')?.text.replace(/^.*\./, '') === type || dict.get('type')?.text === type,
      );
      if (found.length !== 1) return undefined;
      return new Map(
        [...found[0]!].map(([name, each]) => [name, { value: literalOf(each.text, variables), origin: at(each.at) }]),
      );
    },
    mentions: (word) => new RegExp(`(?<!\\w)${word}(?!\\w)`).test(text),
  });
}

const named = (each: CallArgument): [string, CallArgument][] => (each.name === undefined ? [] : [[each.name, each]]);

/** A literal, or the name of a variable above. */
function literalOf(text: string, variables: ReadonlyMap<string, ConfigValue>): FileValue | undefined {
  const word = text.replace(/\s+#.*$/, '').trim();
  return /^[A-Za-z_]\w*$/.test(word) && variables.has(word) ? variables.get(word)!.value : readLiteral(word);
}
