import type { Example } from '../dialect.ts';

export const HF_TRAINER_EXAMPLES: readonly Example[] = [
  {
    command:
      'python train.py --model_name_or_path Qwen/Qwen2.5-7B --per_device_train_batch_size 8 --bf16 true --block_size 1024 --output_dir out --use_lora true --lora_r 8 --eval_strategy steps --dtype bfloat16 --attn_implementation sdpa',
    files: {
      'train.py': `from transformers import HfArgumentParser, TrainingArguments
parser = HfArgumentParser((ModelArguments, TrainingArguments))
# block_size, use_lora, lora_r, dtype and attn_implementation are fields of ModelArguments
trainer.train(resume_from_checkpoint=args.resume_from_checkpoint)
`,
    },
  },
  {
    command: 'torchrun --nproc-per-node 2 run_clm.py args.json',
    files: {
      'args.json': `{
  "model_name_or_path": "Qwen/Qwen2.5-7B",
  "per_device_train_batch_size": 4,
  "block_size": 2048,
  "fsdp": "full_shard auto_wrap",
  "output_dir": "out"
}
`,
    },
  },
];
