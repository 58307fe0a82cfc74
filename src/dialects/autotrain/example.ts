import type { Example } from '../dialect.ts';

export const AUTOTRAIN_EXAMPLES: readonly Example[] = [
  {
    command:
      'autotrain llm --train --model Qwen/Qwen2.5-1.5B --project-name mine --data-path data --trainer sft --peft --quantization none --batch-size 4 --block-size 2048 --mixed-precision bf16',
  },
  { command: 'autotrain llm --train --model Qwen/Qwen2.5-0.5B --project-name mine --data-path data --batch-size 8' },
];
