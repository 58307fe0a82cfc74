import type { Objective, Origin, Setting } from '../../spec/index.ts';
import type { ScriptFacts } from './script.ts';

/** Names that example scripts and their many copies carry. */
const BY_NAME: readonly (readonly [RegExp, Objective])[] = [
  [/(?:^|_)(?:clm|causal_lm)(?:_|$)/, 'clm'],
  [/(?:^|_)(?:glue|xnli|classification|classify|classifier)(?:_|$)/, 'classification'],
  [/(?:^|_)(?:summarization|translation|seq2seq)(?:_|$)/, 'seq2seq'],
  [/(?:^|_)dpo(?:_|$)/, 'dpo'],
  [/(?:^|_)kto(?:_|$)/, 'kto'],
  [/(?:^|_)orpo(?:_|$)/, 'orpo'],
  [/(?:^|_)grpo(?:_|$)/, 'grpo'],
  [/(?:^|_)rloo(?:_|$)/, 'rloo'],
  [/(?:^|_)(?:reward|rm)(?:_|$)/, 'reward'],
  [/(?:^|_)sft(?:_|$)/, 'sft'],
];

/** What the script builds, where its text says so. */
const BY_TEXT: readonly (readonly [string, Objective])[] = [
  ['AutoModelForSequenceClassification', 'classification'],
  ['Seq2SeqTrainer', 'seq2seq'],
  ['AutoModelForSeq2SeqLM', 'seq2seq'],
  ['AutoModelForCausalLM', 'clm'],
];

/** Whose loss the run computes, by the script's name and then its text; null: neither says. */
export function readObjective(script: ScriptFacts, name: string | undefined): Setting<Objective> {
  const stem =
    (name ?? '')
      .split(/[/.]/)
      .filter((part) => part !== 'py')
      .at(-1) ?? '';
  const words = stem.toLowerCase().replaceAll('-', '_');
  const named = BY_NAME.find(([pattern]) => pattern.test(words));
  const derived = (from: string): Origin => ({ kind: 'derived', from });
  if (named) return { value: named[1], origin: derived(`script name ${name}`) };
  const built = BY_TEXT.filter(([word]) => script.mentions(word));
  const objectives = new Set(built.map(([, objective]) => objective));
  const only = objectives.size === 1 ? [...objectives][0]! : null;
  return { value: only, origin: derived(script.path ?? name ?? 'the script') };
}
