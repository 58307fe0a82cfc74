import type { OptimizerFamily } from './optimizer.ts';
import { foreachTemporary, tensorsLike } from './shared.ts';

/** A second copy of the weights, and for AdamW and RAdam the second moment and its roots during the foreach step. */
const scheduleFreeOf = (names: readonly string[], moments: number, file: string): OptimizerFamily => ({
  names,
  source: `schedulefree 1.4.1 ${file}`,
  formula:
    moments > 0 ? 'a copy of the weights and one moment; one more list of it in the step' : 'a copy of the weights',
  cost: (groups) => ({
    statesBytes: tensorsLike(groups, 1 + moments),
    temporaryBytes: moments > 0 ? foreachTemporary(groups) : 0,
    hostBytes: 0,
  }),
});

export const scheduleFree: readonly OptimizerFamily[] = [
  scheduleFreeOf(['schedule_free_adamw'], 1, 'adamw_schedulefree.py'),
  scheduleFreeOf(['schedule_free_radam'], 1, 'radam_schedulefree.py'),
  scheduleFreeOf(['schedule_free_sgd'], 0, 'sgd_schedulefree.py'),
];
