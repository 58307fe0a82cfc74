import type { ParameterGroup } from '../parameters.ts';
import { F32, roundUp, widthOf } from '../tape/tape.ts';
import type { OptimizerSettings } from './optimizer.ts';

/** transformers' default of `rank` in `optim_args` (trainer_optimizer.py). */
const DEFAULT_RANK = 128;

/** Whether a weight is projected: a linear layer whose name matches (`check_target_module_exists`, trainer_pt_utils.py). */
export function isProjected({ path }: ParameterGroup, { targetModules }: OptimizerSettings): boolean {
  if (path === undefined) return false;
  if (targetModules === 'all-linear') return true;
  // transformers insists on a list; without one the documented example is assumed: attention and feed-forward layers.
  const targets = targetModules ?? ['attn', 'attention', 'mlp'];
  return targets.some((target) => path === target || path.includes(target) || matchesWhole(target, path));
}

function matchesWhole(pattern: string, path: string): boolean {
  try {
    return new RegExp(`^(?:${pattern})$`).test(path);
  } catch {
    return false;
  }
}

/** Elements of one matrix's projection, and of the gradient after it. */
export interface Projection {
  readonly matrix: number;
  /** The square factor of an SVD of which the projection is a view. */
  readonly square: number;
  readonly lowRank: number;
  readonly rank: number;
}

/** `proj_type=std`: the longer side stays, the shorter one becomes `rank`. */
export function projectionOf({ parameter }: ParameterGroup, { args }: OptimizerSettings): Projection {
  const { rows, columns } = parameter;
  const asked = Number(args.get('rank') ?? DEFAULT_RANK);
  const rank = Math.min(Number.isFinite(asked) && asked > 0 ? asked : DEFAULT_RANK, rows, columns);
  const square = Math.min(rows, columns) ** 2;
  return rows >= columns
    ? { matrix: rank * columns, square, lowRank: rows * rank, rank }
    : { matrix: rows * rank, square, lowRank: rank * columns, rank };
}

/**
 * What finding a projection by SVD makes beside the gradient: an fp32 copy of a 16-bit gradient, the column-major copy that
 * cuSOLVER works in, its workspace (taken as large), and U and V. It happens in the first step and every `update_proj_gap`.
 */
export function svdBytes({ parameter }: ParameterGroup): number {
  const { rows, columns } = parameter;
  const whole = roundUp(rows * columns * 4);
  const short = Math.min(rows, columns);
  return (parameter.dtype === F32 ? 2 : 3) * whole + roundUp(rows * short * 4) + roundUp(short * columns * 4);
}

/**
 * A projection found by SVD, bytes: for a 16-bit gradient a copy in its dtype; in fp32 the slice itself, a view that keeps
 * the whole factor alive (galore_projector.py `get_orthogonal_matrix`).
 */
export function svdProjectionBytes(group: ParameterGroup, settings: OptimizerSettings, wide: boolean): number {
  const { matrix, square } = projectionOf(group, settings);
  return wide ? roundUp(square * 4) : bytesLike(group, matrix);
}

export const bytesLike = ({ parameter }: ParameterGroup, elements: number): number =>
  roundUp(elements * widthOf(parameter.dtype));
