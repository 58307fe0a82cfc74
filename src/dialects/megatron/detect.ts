import type { Claim, Position } from '../dialect.ts';

/** Flags of Megatron-LM that no other trainer spells so; the batch alone could be anybody's. */
const OWN =
  /^--(?:tensor-model-parallel-size|pipeline-model-parallel-size|use-distributed-optimizer|transformer-impl|num-attention-heads|recompute-granularity|recompute-activations|train-iters|train-samples|use-mcore-models|tokenizer-type)(?:=|$)/;

/** `pretrain_gpt.py` and its kin: a script that is given Megatron's batch and at least one more flag of Megatron's own. */
export function startOfMegatron({ argv, target }: Position): Claim | undefined {
  if (!target || target.form === 'program') return undefined;
  const args = argv.slice(target.argsFrom);
  const batch = args.some((arg) => /^--micro-batch-size(?:=|$)/.test(arg));
  if (!batch || !args.some((arg) => OWN.test(arg))) return undefined;
  return { from: target.index, to: argv.length };
}
