import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { countScoringParameters, describeModel, type ModelFacts } from '../../src/model/index.ts';

interface Counted {
  readonly name: string;
  readonly labels: number;
  readonly parameters: number;
  readonly config: Readonly<Record<string, unknown>>;
}

/** Counted from AutoModelForSequenceClassification of transformers 5.17 on the meta device. */
const counted = JSON.parse(
  readFileSync(join(import.meta.dirname, '../fixtures/model/scoring-counts.json'), 'utf8'),
) as Counted[];

const factsOf = (config: Readonly<Record<string, unknown>>): ModelFacts => {
  const result = describeModel(config);
  if (!result.ok) throw new Error(result.error[0]!.message);
  return result.value;
};

describe('models that score rows', () => {
  it.each(counted.map((model) => [model.name, model] as const))('%s', (_, { config, labels, parameters }) => {
    const facts = factsOf(config);
    expect(facts.labels).toBe(labels);
    expect(countScoringParameters(facts.description, labels)).toBe(parameters);
  });

  it('takes the number of labels from their names, else two', () => {
    expect(factsOf({ model_type: 'bert', id2label: { 0: 'cat', 1: 'dog', 2: 'ape' } }).labels).toBe(3);
    expect(factsOf({ model_type: 'bert' }).labels).toBe(2);
    expect(factsOf({ model_type: 'bert', num_labels: -3 }).labels).toBe(2);
  });
});
