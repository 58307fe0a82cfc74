import { formatBytes } from '../core/index.ts';
import { type ModelFacts, type Op, visitOps } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { ParameterPlan } from './parameters.ts';
import { F32, widthOf } from './tape/tape.ts';

/** What rows with images need beyond rows of text: what the vision tower then keeps, bytes. */
export interface ImageCost {
  /** Gradients and optimizer states of weights that text never reaches. */
  readonly trainedBytes: number;
  /** What the tower keeps for the backward pass, for one image. */
  readonly perImageBytes: number;
  /** For the estimate's assumptions. */
  readonly assumptions: readonly string[];
}

/** Estimated from the tower's widths alone: what each layer reads and hands on. Undefined for models of text. */
export function imageCost(
  values: PlanValues,
  { description: { image, idle = [] } }: ModelFacts,
  plan: ParameterPlan,
): ImageCost | undefined {
  if (!image) return undefined;
  const width = values.mixedPrecision === 'no' ? (values.dtype === 'fp32' ? 4 : 2) : 2;
  // A norm keeps its input in fp32 as well, a linear layer its input; the result is somebody's input.
  let elements = 0;
  let boundary = 0;
  let widest = 0;
  for (const { ops, count } of idle) {
    const kept = keptBy(ops);
    elements += kept.total * count;
    boundary += count > 1 ? kept.first * count : kept.total;
    widest = Math.max(widest, kept.total);
  }
  const perPatch = values.gradientCheckpointing.enabled ? boundary + widest : elements;
  const perImageBytes = Math.round(perPatch * width * image.patches);
  let trainedBytes = 0;
  for (const { parameter, count } of plan.idle) {
    if (!parameter.trainable) continue;
    trainedBytes += (parameter.bytes + parameter.elements * widthOf(F32) * 2) * count;
  }
  const tokens = image.tokens > 0 ? `${image.tokens} tokens of its row and ` : '';
  return {
    trainedBytes,
    perImageBytes,
    assumptions: [
      'rows are text alone: the vision tower is held, and nothing more',
      `an image of ${image.pixels} pixels takes ${tokens}about ${formatBytes(perImageBytes)} in the vision tower`,
      ...(trainedBytes > 0
        ? [`with images, gradients and optimizer states of the vision tower add up to ${formatBytes(trainedBytes)}`]
        : []),
    ],
  };
}

function keptBy(ops: readonly Op[]): { readonly total: number; readonly first: number } {
  let total = 0;
  let first = 0;
  visitOps(ops, '', (op) => {
    if (op.op === 'linear') {
      total += op.inFeatures + op.outFeatures / 2;
      first ||= op.inFeatures;
    } else if (op.op === 'norm') total += op.size;
  });
  return { total, first };
}
