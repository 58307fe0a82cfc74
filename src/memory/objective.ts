import { type Diagnostic, error } from '../core/index.ts';
import type { Objective, PlanValues } from '../spec/index.ts';

/** What an objective adds to a plain next-token step. */
export interface ObjectiveShape {
  /** Rows of one micro batch that go through the model. */
  readonly rowsPerRow: number;
  readonly loss: 'tokens' | 'preference' | 'pooled';
  /** A second, frozen copy of the model unless adapters can be switched off. */
  readonly reference: boolean;
}

const SHAPES: Readonly<Partial<Record<Objective, ObjectiveShape>>> = {
  sft: { rowsPerRow: 1, loss: 'tokens', reference: false },
  clm: { rowsPerRow: 1, loss: 'tokens', reference: false },
  seq2seq: { rowsPerRow: 1, loss: 'tokens', reference: false },
  // Chosen and rejected in one batch (trl dpo_trainer.py).
  dpo: { rowsPerRow: 2, loss: 'preference', reference: true },
  orpo: { rowsPerRow: 2, loss: 'preference', reference: false },
  kto: { rowsPerRow: 1, loss: 'preference', reference: true },
  reward: { rowsPerRow: 2, loss: 'pooled', reference: false },
  classification: { rowsPerRow: 1, loss: 'pooled', reference: false },
};

const REASONS: Readonly<Partial<Record<Objective, string>>> = {
  grpo: 'memory for generating completions depends on the engine and its settings',
  rloo: 'memory for generating completions depends on the engine and its settings',
};

export function objectiveShape(values: PlanValues): ObjectiveShape | Diagnostic {
  const shape = SHAPES[values.objective];
  if (shape) return shape;
  const reason = REASONS[values.objective] ?? 'it is not described';
  return error('unsupported-objective', `objective ${values.objective} cannot be estimated: ${reason}`);
}
