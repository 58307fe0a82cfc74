import { joinPath, type LinearOp } from '../../model/index.ts';
import type { LinearState } from '../parameter.ts';
import { quantise } from '../quantise.ts';
import { F32 } from '../tape/tape.ts';
import { versionFacts } from '../versions.ts';
import type { ParameterSet } from './parameter-set.ts';

/** A linear layer, quantised where it is, with its adapter. `path`: of the module it stands in. */
export function linearState(set: ParameterSet, op: LinearOp, path: string, count: number): LinearState {
  const { quantization, versions } = set.values;
  const quantised =
    quantization && !op.keptWide
      ? quantise(
          op.outFeatures,
          op.inFeatures,
          quantization,
          versionFacts(versions).keepsQuantisedInputs,
          set.values.ownModules === 'litgpt',
        )
      : undefined;
  if (quantised) {
    set.quantisedBytes += quantised.bytes * count;
    set.quantised.push({ weight: quantised, count });
    set.largestQuantised = Math.max(set.largestQuantised, quantised.elements);
  }
  const own = joinPath(path, op.name);
  const saved = set.adapters.trainsCopyOf(own);
  const kept = quantization ? set.rest : set.values.dtype === 'fp16' ? F32 : set.base;
  const dtype = op.wide ? F32 : op.keptWide ? kept : set.base;
  const weight = quantised ? undefined : set.make(op.outFeatures, op.inFeatures, dtype, !set.peft, count, own);
  const bias = op.bias ? set.makeBase(1, op.outFeatures, count) : undefined;
  if (saved && weight) {
    const copy = set.make(op.outFeatures, op.inFeatures, dtype, true, count, own);
    const copyOfBias = op.bias ? set.make(1, op.outFeatures, set.rest, true, count) : undefined;
    return { weight: copy, quantised, bias: copyOfBias, adapter: undefined };
  }
  const adapter = set.adapters.forLinear(op, own, (rows, columns, dtype) =>
    set.make(rows, columns, dtype, true, count),
  );
  if (adapter) set.matchedTargets += count;
  return { weight, quantised, bias, adapter };
}

/** PEFT trains these whole, beside a frozen copy, when rows are scored (`PeftModelForSequenceClassification`). */
const SCORING_MODULES: readonly string[] = ['classifier', 'score'];

/** PEFT takes every module whose path ends with one of the names, whatever stands before them in the last part. */
export const isSavedWhole = (path: string): boolean =>
  path.split('.').some((part) => SCORING_MODULES.some((name) => part.endsWith(name)));

/** Beside the frozen layer a copy that is trained. */
export function scoringState(set: ParameterSet, op: LinearOp): LinearState {
  if (set.peft) {
    set.make(op.outFeatures, op.inFeatures, set.rest, false, 1);
    if (op.bias) set.make(1, op.outFeatures, set.rest, false, 1);
  }
  const weight = set.make(op.outFeatures, op.inFeatures, set.rest, true, 1);
  const bias = op.bias ? set.make(1, op.outFeatures, set.rest, true, 1) : undefined;
  return { weight, quantised: undefined, bias, adapter: undefined };
}

/** A linear layer that no op list names. */
export const unnamedLinear = (name: string, inFeatures: number, outFeatures: number, bias: boolean): LinearOp => ({
  op: 'linear',
  name,
  inFeatures,
  outFeatures,
  bias,
  form: 'linear',
  input: '',
  output: '',
});

/** A layer that runs twice a pass: its gradients are complete with the second. */
export function useTwice({ weight, bias, adapter }: LinearState): void {
  const low = adapter && adapter.kind !== 'ia3' ? [adapter.a, adapter.b, adapter.magnitude] : [];
  for (const parameter of [weight, bias, ...low]) {
    const leaf = parameter?.tensor.node?.leaf;
    if (leaf) leaf.uses += 1;
  }
}
