import type { Example } from '../dialect.ts';

export const TEMPLATE_EXAMPLES: readonly Example[] = [
  { command: 'tool train --model Qwen/Qwen2.5-0.5B --rows 8 --accumulate 2 --tokens 1024 --lr 1e-4' },
];
