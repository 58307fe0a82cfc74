import type { Example } from '../dialect.ts';

export const OPENRLHF_EXAMPLES: readonly Example[] = [
  {
    command:
      'torchrun --nproc-per-node 2 -m openrlhf.cli.train_sft --model.model_name_or_path Qwen/Qwen2.5-7B --train.micro_batch_size 2 --train.batch_size 64 --data.max_len 4096 --ds.zero_stage 3 --ds.lora.rank 32',
  },
  {
    command:
      'torchrun --nproc-per-node 2 -m openrlhf.cli.train_dpo --pretrain Qwen/Qwen2.5-7B --micro_train_batch_size 1 --train_batch_size 64 --max_len 2048 --zero_stage 2 --gradient_checkpointing',
  },
];
