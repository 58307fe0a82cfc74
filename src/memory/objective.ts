import { type Diagnostic, error } from '../core/index.ts';
import type { Objective, PlanValues } from '../spec/index.ts';
import type { DeviceFacts } from './device.ts';
import type { LossOptions } from './walk/loss.ts';

/** What an objective adds to a plain next-token step. */
export interface ObjectiveShape {
  /** Rows of one micro batch that go through the model. */
  readonly rowsPerRow: number;
  readonly loss: LossOptions['kind'];
  /** A second, frozen copy of the model is run, unless adapters can be switched off: then this one is run twice. */
  readonly reference: boolean;
  /** Its weights are held. */
  readonly referenceWeights: boolean;
  /** Tokens of a row that were generated; 0 where nothing is. */
  readonly completionTokens: number;
}

type Shape = Pick<ObjectiveShape, 'rowsPerRow' | 'loss' | 'reference'>;

const SHAPES: Readonly<Partial<Record<Objective, Shape>>> = {
  sft: { rowsPerRow: 1, loss: 'tokens', reference: false },
  clm: { rowsPerRow: 1, loss: 'tokens', reference: false },
  seq2seq: { rowsPerRow: 1, loss: 'tokens', reference: false },
  // Chosen and rejected in one batch (trl dpo_trainer.py).
  dpo: { rowsPerRow: 2, loss: 'pairs', reference: true },
  orpo: { rowsPerRow: 2, loss: 'odds', reference: false },
  kto: { rowsPerRow: 1, loss: 'singles', reference: true },
  reward: { rowsPerRow: 2, loss: 'pooled', reference: false },
  classification: { rowsPerRow: 1, loss: 'pooled', reference: false },
  grpo: { rowsPerRow: 1, loss: 'completion', reference: false },
  rloo: { rowsPerRow: 1, loss: 'completion', reference: false },
};

/** A colocated vLLM: its share of the whole card, bytes; a diagnostic where the card is not known. */
export function engineBytes({ generation }: PlanValues, device: DeviceFacts): number | Diagnostic {
  if (generation?.engine !== 'vllm_colocate') return 0;
  if (device.capacityBytes !== undefined) return Math.round(device.capacityBytes * generation.vllmGpuMemoryUtilization);
  return error('unknown-card', 'a colocated vLLM takes a share of the card, and the card is not known', {
    help: 'name the card with --gpu',
  });
}

/** How the rows of a micro batch go through the model and into the loss; a diagnostic where that is not known. */
export function objectiveShape(values: PlanValues): ObjectiveShape | Diagnostic {
  const { objective, generation } = values;
  const shape = SHAPES[objective];
  if (!shape) {
    return error('unsupported-objective', `objective ${objective} cannot be estimated: it is not described`);
  }
  if (shape.loss === 'completion' && !generation) {
    return error(
      'unsupported-objective',
      `objective ${objective} cannot be estimated: nothing is said of its completions`,
      {
        help: 'say generation: { max_completion_length: 512, num_generations: 8 } in the launch config',
      },
    );
  }
  const smoothed = shape.loss === 'tokens' && (values.labelSmoothingFactor ?? 0) > 0 && values.lossImpl === 'full';
  const reference = shape.reference && values.precomputeRefLogProbs !== true;
  return {
    rowsPerRow: shape.rowsPerRow,
    loss: smoothed ? 'smoothed' : shape.loss,
    reference,
    // GRPO's reference runs before the step, in passes without gradients: only its weights count.
    referenceWeights: reference || (generation?.beta ?? 0) > 0,
    completionTokens: Math.min(values.maxLength, generation?.maxCompletionLength ?? 0),
  };
}
