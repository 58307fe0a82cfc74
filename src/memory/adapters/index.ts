import type { LinearOp, ModelDescription } from '../../model/index.ts';
import type { PlanValues } from '../../spec/index.ts';
import type { Adapter, Parameter } from '../parameters.ts';
import { BF16, type Dtype, F16, F32 } from '../tape/tape.ts';

type Make = (rows: number, columns: number, dtype: Dtype) => Parameter;

/** Which modules a PEFT method touches, and with which tensors. */
export interface Adapters {
  readonly forLinear: (op: LinearOp, path: string, make: Make) => Adapter | undefined;
  /** A module that PEFT copies and trains whole; `dtype` when it is not the module's own. */
  readonly trainsCopyOf: (path: string) => { readonly dtype: Dtype | undefined } | undefined;
}

const NONE: Adapters = { forLinear: () => undefined, trainsCopyOf: () => undefined };
const code = (dtype: 'fp32' | 'bf16' | 'fp16'): Dtype => (dtype === 'fp32' ? F32 : dtype === 'bf16' ? BF16 : F16);

/** PEFT's rule: the name itself, or the end of the path after a dot (`tuners_utils.check_target_module_exists`). */
export const matchesTarget = (path: string, targets: readonly string[]): boolean =>
  targets.some((target) => path === target || path.endsWith(`.${target}`));

/** Targets of a LoRA run; `all-linear` is every linear layer but the head. */
function loraTargets(description: ModelDescription, values: PlanValues): (path: string) => boolean {
  const targets = values.lora!.targetModules;
  const isHead = (path: string): boolean => path === description.head.name;
  if (targets === 'all-linear') return (path) => !isHead(path);
  const list = targets === 'default' ? (description.peft.lora ?? []) : targets;
  return (path) => matchesTarget(path, list);
}

export function adaptersFor(description: ModelDescription, values: PlanValues): Adapters {
  if (values.ia3) {
    const { targetModules, feedforwardModules, adapterDtype } = values.ia3;
    const dtype = code(adapterDtype);
    return {
      forLinear: (op, path, make) => {
        if (!matchesTarget(path, targetModules)) return undefined;
        const feedforward = matchesTarget(path, feedforwardModules);
        return { kind: 'ia3', feedforward, scaling: make(1, feedforward ? op.inFeatures : op.outFeatures, dtype) };
      },
      trainsCopyOf: () => undefined,
    };
  }
  if (!values.lora || values.method === 'full') return NONE;
  const { r, loraDropout, modulesToSave, adapterDtype } = values.lora;
  const dtype = code(adapterDtype);
  const isTarget = loraTargets(description, values);
  const dora = values.method === 'dora';
  return {
    forLinear: (op, path, make) => {
      if (!isTarget(path)) return undefined;
      return {
        kind: dora ? 'dora' : 'lora',
        a: make(r, op.inFeatures, dtype),
        b: make(op.outFeatures, r, dtype),
        magnitude: dora ? make(1, op.outFeatures, dtype) : undefined,
        dropout: loraDropout,
      };
    },
    trainsCopyOf: (path) =>
      matchesTarget(path, modulesToSave) ? { dtype: adapterDtype === 'fp32' ? F32 : undefined } : undefined,
  };
}
