import { type ModelDescription, visitOps } from '../../model/index.ts';
import type { ParameterSettings } from '../parameter.ts';

/** A matrix or vector that is trained. */
export interface TrainedShape {
  readonly rows: number;
  readonly columns: number;
}

/**
 * What PEFT trains for prompt tuning (one vector a virtual token) and prefix tuning (keys and values of every layer for each,
 * or a small network that makes them), in fp32. Source: peft 0.21 tuners/prompt_tuning/model.py, prefix_tuning/model.py,
 * peft_model.py `_prepare_prompt_learning_config`.
 */
export function virtualTokenShapes(
  description: ModelDescription,
  { method, promptTuning }: Pick<ParameterSettings, 'method' | 'promptTuning'>,
): readonly TrainedShape[] {
  if (!promptTuning) return [];
  const { numVirtualTokens, projectionHiddenSize } = promptTuning;
  if (method === 'prompt_tuning') return [{ rows: numVirtualTokens, columns: description.hiddenSize }];
  if (method !== 'prefix_tuning') return [];
  const width = prefixWidth(description);
  const all = description.layers.length * 2 * width;
  if (projectionHiddenSize === undefined) return [{ rows: numVirtualTokens, columns: all }];
  return [
    { rows: numVirtualTokens, columns: width },
    { rows: projectionHiddenSize, columns: width },
    { rows: 1, columns: projectionHiddenSize },
    { rows: all, columns: projectionHiddenSize },
    { rows: 1, columns: all },
  ];
}

/** Features of one layer's keys: PEFT takes them from hidden size and heads, not from the head size. */
function prefixWidth({ kinds, hiddenSize }: ModelDescription): number {
  let width = hiddenSize;
  for (const ops of kinds) {
    visitOps(ops, '', (op) => {
      if (op.op === 'attention') width = Math.floor(hiddenSize / op.heads) * op.kvHeads;
    });
  }
  return width;
}
