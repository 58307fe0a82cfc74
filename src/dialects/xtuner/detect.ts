import type { Claim, Position } from '../dialect.ts';
import { programName } from '../scan-options.ts';

/** How XTuner is started. */
export interface XtunerStart {
  readonly claim: Claim;
  readonly argsFrom: number;
  /** `cli`: `xtuner train`; `script`: its train.py, started by something else; `v1`: the module of its newer trainer. */
  readonly form: 'cli' | 'script' | 'v1';
}

/** `xtuner train CONFIG`, `xtuner/tools/train.py CONFIG`, `xtuner/v1/train/cli/sft.py --flags`. */
export function startOfXtuner({ argv, index, target }: Position): XtunerStart | undefined {
  if (!target) {
    if (programName(argv[index] ?? '') !== 'xtuner' || argv[index + 1]?.toLowerCase() !== 'train') return undefined;
    return { claim: { from: index, to: argv.length }, argsFrom: index + 2, form: 'cli' };
  }
  const claim: Claim = { from: target.index, to: argv.length };
  const path = target.form === 'module' ? `${target.name.replaceAll('.', '/')}.py` : target.name;
  if (/(?:^|\/)xtuner\/v1\/train\/cli\/\w+\.py$/.test(path)) return { claim, argsFrom: target.argsFrom, form: 'v1' };
  if (/(?:^|\/)xtuner\/tools\/train\.py$/.test(path)) return { claim, argsFrom: target.argsFrom, form: 'script' };
  return undefined;
}
