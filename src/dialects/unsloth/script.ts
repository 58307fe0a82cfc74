import type { ValueSources } from '../hf-argparser/values.ts';
import { callsOf, readLiteral } from '../hf-trainer/python-literals.ts';
import type { ScriptFacts } from '../hf-trainer/script.ts';

/** Calls whose keywords are the settings of an Unsloth notebook. */
const CALLS = [
  'from_pretrained',
  'get_peft_model',
  'SFTConfig',
  'TrainingArguments',
  'UnslothTrainingArguments',
  'SFTTrainer',
];

/**
 * What a script says by literal keywords of the usual calls, a name that is set once to a literal counted in. Whatever is
 * computed is unknown: nothing of the script is executed.
 */
export function scriptKeywords({ text, path }: ScriptFacts): NonNullable<ValueSources['script']> {
  const source = text ?? '';
  const values = new Map<string, { value: ReturnType<typeof readLiteral>; line: number; flag: boolean }>();
  for (const call of CALLS) {
    for (const keywords of callsOf(source, call)) {
      for (const { name, text: written, at } of keywords) {
        if (name === undefined || values.has(name)) continue;
        const value = readLiteral(written) ?? constant(source, written);
        values.set(name, { value, line: source.slice(0, at).split('\n').length, flag: false });
      }
    }
  }
  return { path: path ?? 'the script', values, aliases: new Map() };
}

function constant(source: string, name: string): ReturnType<typeof readLiteral> {
  if (!/^[A-Za-z_]\w*$/.test(name)) return undefined;
  const set = [...source.matchAll(new RegExp(`^${name}\\s*=\\s*([^=\\n#][^\\n#]*)`, 'gm'))];
  return set.length === 1 ? readLiteral(set[0]![1]!) : undefined;
}
