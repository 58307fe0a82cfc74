import { formatBytes } from '../core/index.ts';
import { type ModelFacts, type Op, visitOps } from '../model/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { ParameterPlan } from './parameters.ts';
import { F32, widthOf } from './tape/tape.ts';
import { walkTower } from './tower.ts';

/** What rows with images need beyond rows of text: what the vision tower then keeps, bytes. */
export interface ImageCost {
  /** Gradients and optimizer states of weights that text never reaches. */
  readonly trainedBytes: number;
  /** What the tower keeps for the backward pass, for one image. */
  readonly perImageBytes: number;
  /** For the estimate's assumptions. */
  readonly assumptions: readonly string[];
}

/** Layers that can be run are walked; of other modules the widths say what they keep. Undefined for models of text. */
export function imageCost(
  values: PlanValues,
  { description: { image, idle = [] } }: ModelFacts,
  plan: ParameterPlan,
): ImageCost | undefined {
  if (!image) return undefined;
  const width = values.mixedPrecision === 'no' ? (values.dtype === 'fp32' ? 4 : 2) : 2;
  let kept = 0;
  let transient = 0;
  for (const modules of idle) {
    if (modules.runs) {
      const cost = walkTower(modules, image.patches, values, plan);
      // What enters the first layer stays until the last has run, or longer.
      kept += cost.keptBytes + modules.runs.hiddenSize * width * image.patches;
      transient = Math.max(transient, cost.transientBytes);
    } else {
      const { total, first } = keptBy(modules.ops);
      const elements = values.gradientCheckpointing.enabled && modules.count > 1 ? first : total;
      kept += elements * modules.count * width * image.patches;
      transient = Math.max(transient, total * width * image.patches);
    }
  }
  const perImageBytes = Math.round(kept + transient);
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
