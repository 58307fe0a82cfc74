import type { FloatDType } from '../../core/index.ts';
import type { StackView, Written } from '../dialect.ts';
import { cannot, together } from '../hf-argparser/written.ts';
import type { AxolotlDetail } from './read.ts';

/** The dtype of the weights once all of the rewrite is written. */
export const wantedDtype = ({ wanted, spec }: StackView): FloatDType =>
  (wanted?.has('dtype') ? wanted.get('dtype') : spec.dtype?.value) as FloatDType;

const ALONE = 'one key of axolotl decides the dtype of the weights and of autocast';

/** Weights and autocast in 16 bits, where a rewrite sets both; older switches of pure 16 bits would say something else. */
export function writePrecision({ values }: AxolotlDetail, stack: StackView): Written {
  const dtype = wantedDtype(stack);
  const both = stack.wanted?.has('dtype') && stack.wanted.has('mixedPrecision');
  if (!both || stack.wanted?.get('mixedPrecision') !== dtype || dtype === 'fp32') return cannot(ALONE);
  const older = ['bfloat16', 'float16', 'load_in_8bit'].find((key) => values.find(key) !== undefined);
  if (older) return cannot(`${older} decides the dtype of the weights as well`);
  const other = dtype === 'bf16' ? 'fp16' : 'bf16';
  // `bf16` absent is `auto`, `fp16` absent is off.
  const off = other === 'fp16' && values.find('fp16') === undefined ? [] : [values.assign(other, false)];
  return together(values.assign(dtype, true), ...off);
}
