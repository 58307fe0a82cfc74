import type { Example } from '../dialect.ts';

export const MEGATRON_EXAMPLES: readonly Example[] = [
  {
    command:
      'torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --ffn-hidden-size 14336 --num-attention-heads 32 --seq-length 8192 --vocab-size 128256 --micro-batch-size 1 --global-batch-size 128 --tensor-model-parallel-size 2 --use-distributed-optimizer --recompute-granularity full --recompute-method uniform --recompute-num-layers 1 --bf16',
  },
];
