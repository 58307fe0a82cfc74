import { F32, roundUp } from '../tape/tape.ts';
import type { OptimizerFamily } from './optimizer.ts';

/**
 * transformers' Adafactor without first moment: one row and one column of fp32 statistics a matrix, whole fp32 states for
 * vectors. The step goes tensor by tensor: fp32 copies of gradient and parameter (when they are 16 bit), the squared
 * gradient and what is made of it.
 */
export const adafactor: OptimizerFamily = {
  names: ['adafactor'],
  source: 'transformers 5.17 optimization.py Adafactor.step',
  formula: 'rows + columns in fp32 a matrix; fp32 copies of one gradient, weight and update in the step',
  cost: (groups) => {
    let statesBytes = 0;
    for (const { parameter, count } of groups) {
      const { rows, columns, elements, stack } = parameter;
      const factored = parameter.dimensions >= 2;
      const bytes = factored ? roundUp(rows * 4) + roundUp(stack * columns * 4) : roundUp(elements * 4);
      statesBytes += count * bytes;
    }
    // The last update of one tensor is still bound while the next one's is made.
    let temporaryBytes = 0;
    let previous = 0;
    for (const { parameter } of groups) {
      const full = roundUp(parameter.elements * 4);
      temporaryBytes = Math.max(temporaryBytes, full * (parameter.dtype === F32 ? 2 : 4) + previous);
      previous = full;
    }
    return { statesBytes, temporaryBytes, hostBytes: 0 };
  },
};
