import { classifierOps, countScoringParameters, type ModelDescription, type Op } from '../model/index.ts';
import { Latest } from './latest.ts';
import { type ParameterPlan, type ParameterSettings, planParameters } from './parameters.ts';
import { perModel } from './per-model.ts';

/** Every tensor of a run, and its scoring head. */
export interface RunParameters {
  readonly plan: ParameterPlan;
  /** Ops of the head that scores rows, in place of the token head. */
  readonly scoring: readonly Op[] | undefined;
  /** Parameters of the model with that head; undefined: it has its own. */
  readonly scoringTotal: number | undefined;
}

/** What decides them; `labels`: scores a row of the scoring head. */
type Question = ParameterSettings & { readonly labels: number | undefined };

/** Batch, length and most levers leave the tensors as they are, so that plans of one search have them in common. */
const known = perModel(() => new Latest<Question, RunParameters>());

export function parametersOfRun(
  description: ModelDescription,
  settings: ParameterSettings,
  labels: number | undefined,
): RunParameters {
  const { method, dtype, quantization, lora, ia3, promptTuning, versions, ownModules, embeddingsInFp32 } = settings;
  const question: Question = {
    labels,
    method,
    dtype,
    quantization,
    lora,
    ia3,
    promptTuning,
    versions,
    ownModules,
    embeddingsInFp32,
  };
  return known(description).get(question, () => {
    const scoring = labels === undefined ? undefined : classifierOps(description, labels);
    return {
      plan: planParameters(description, question, scoring),
      scoring,
      scoringTotal: labels === undefined ? undefined : countScoringParameters(description, labels),
    };
  });
}
