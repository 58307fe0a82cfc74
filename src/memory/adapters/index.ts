import type { FloatDType } from '../../core/index.ts';
import { type LinearOp, type ModelDescription, type MoeOp, visitOps } from '../../model/index.ts';
import type { Ia3, Lora } from '../../spec/index.ts';
import type { Adapter, Parameter, ParameterSettings } from '../parameters.ts';
import { BF16, type Dtype, F16, F32 } from '../tape/tape.ts';
import { versionFacts } from '../versions.ts';

type Make = (rows: number, columns: number, dtype: Dtype) => Parameter;

/** Which modules a PEFT method touches, and with which tensors. */
export interface Adapters {
  readonly dtype: Dtype;
  readonly forLinear: (op: LinearOp, path: string, make: Make) => Adapter | undefined;
  /** Rank of LoRA on a table of vectors; 0: untouched. all-linear never means them. */
  readonly rankOfTable: (path: string) => number;
  /** LoRA ranks for the stacked weights of a sparse block, 0: untouched. */
  readonly forExperts: (op: MoeOp) => ExpertRanks;
  /** A module that PEFT copies and trains whole, in its own dtype. */
  readonly trainsCopyOf: (path: string) => boolean;
}

export interface ExpertRanks {
  readonly router: number;
  readonly gateUp: number;
  readonly down: number;
}

const NO_RANKS: ExpertRanks = { router: 0, gateUp: 0, down: 0 };
const NONE: Adapters = {
  dtype: F32,
  forLinear: () => undefined,
  rankOfTable: () => 0,
  forExperts: () => NO_RANKS,
  trainsCopyOf: () => false,
};
const code = (dtype: FloatDType): Dtype => (dtype === 'fp32' ? F32 : dtype === 'bf16' ? BF16 : F16);

/** PEFT's rule: the name itself, or the end of the path after a dot (`tuners_utils.check_target_module_exists`). */
export const matchesTarget = (path: string, targets: readonly string[]): boolean =>
  targets.some((target) => path === target || path.endsWith(`.${target}`));

/** modules_to_save asks only for the end of a path, dot or not, and takes all that stands inside the module (`_set_trainable`). */
export function isSaved(path: string, names: readonly string[]): boolean {
  if (names.length === 0) return false;
  for (let end = path.length; end > 0; end = path.lastIndexOf('.', end - 1)) {
    if (names.some((name) => path.endsWith(name, end))) return true;
  }
  return false;
}

export function adaptersFor(description: ModelDescription, values: ParameterSettings): Adapters {
  if (values.ia3) return ia3(values.ia3);
  if (!values.lora || values.method === 'full') return NONE;
  const stacked = versionFacts(values.versions).loopsExperts ? new Set<string>() : expertNames(description);
  return lora(description, values.lora, targetNames(description, values), values.method === 'dora', stacked);
}

function ia3({ targetModules, feedforwardModules, adapterDtype }: Ia3): Adapters {
  const dtype = code(adapterDtype);
  return {
    ...NONE,
    dtype,
    forLinear: (op, path, make) => {
      if (!matchesTarget(path, targetModules)) return undefined;
      const feedforward = matchesTarget(path, feedforwardModules);
      return { kind: 'ia3', feedforward, scaling: make(1, feedforward ? op.inFeatures : op.outFeatures, dtype) };
    },
  };
}

/**
 * The names LoRA is asked for; `all`: whatever PEFT's all-linear finds, stacked experts included. On a quantised base all-linear
 * means the layers that were quantised: bitsandbytes leaves stacked experts as they are.
 */
export function targetNames(
  description: ModelDescription,
  values: Pick<ParameterSettings, 'lora' | 'quantization'>,
): 'all' | readonly string[] {
  const targets = values.lora?.targetModules ?? [];
  if (targets === 'default') return description.peft.lora ?? [];
  if (targets !== 'all-linear') return targets;
  if (values.quantization === null) return 'all';
  const names = new Set<string>();
  const { encoder, idle = [], embedding, final } = description;
  for (const ops of [
    embedding,
    final,
    ...description.kinds,
    ...(encoder?.kinds ?? []),
    ...idle.map((modules) => modules.ops),
  ]) {
    visitOps(ops, '', (op) => {
      if (op.op === 'linear') names.add(op.name);
    });
  }
  return [...names];
}

function lora(
  description: ModelDescription,
  settings: Lora,
  targets: 'all' | readonly string[],
  dora: boolean,
  taken: ReadonlySet<string>,
): Adapters {
  const { r, loraDropout, modulesToSave } = settings;
  const dtype = code(settings.adapterDtype);
  const all = targets === 'all';
  const names = all ? [] : targets;
  const asks = (name: string): boolean =>
    all || matchesTarget(name, names) || names.some((n) => n.endsWith(`.${name}`));
  return {
    dtype,
    forLinear: (op, path, make) => {
      if (all ? path === description.head.name : !matchesTarget(path, names)) return undefined;
      if (taken.has(op.name)) return undefined;
      return {
        kind: dora ? 'dora' : 'lora',
        a: make(r, op.inFeatures, dtype),
        b: make(op.outFeatures, r, dtype),
        magnitude: dora ? make(1, op.outFeatures, dtype) : undefined,
        dropout: loraDropout,
      };
    },
    forExperts: ({ targetNames: names }) => {
      if (!names) return NO_RANKS;
      // Two projections in one weight: twice the rank.
      const gateUp = asks(names.gate) && asks(names.up) ? 2 * r : 0;
      return { router: asks(names.router) ? r : 0, gateUp, down: asks(names.down) ? r : 0 };
    },
    rankOfTable: (path) => (!all && matchesTarget(path, names) ? r : 0),
    trainsCopyOf: (path) => isSaved(path, modulesToSave),
  };
}

/** Names that stand for an expert's projection are taken for the stacked weights alone (PEFT's v4 → v5 conversion). */
function expertNames(description: ModelDescription): ReadonlySet<string> {
  const names = new Set<string>();
  for (const ops of description.kinds) {
    visitOps(ops, '', (op) => {
      if (op.op === 'moe' && op.targetNames) for (const name of Object.values(op.targetNames)) names.add(name);
    });
  }
  return names;
}
