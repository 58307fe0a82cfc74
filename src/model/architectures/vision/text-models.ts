import type { Architecture } from '../architecture.ts';
import { cohere2 } from '../cohere.ts';
import { gemma, gemma2, gemma3 } from '../gemma.ts';
import { gemma3n } from '../gemma3n.ts';
import { gemma4 } from '../gemma4.ts';
import { glm, glm4vText } from '../glm.ts';
import { lfm2 } from '../lfm2.ts';
import { llama } from '../llama.ts';
import { llama4 } from '../llama4.ts';
import { ministral3, mistral } from '../mistral.ts';
import { mixtral } from '../mixtral.ts';
import { phi3 } from '../phi3.ts';
import { qwen3Moe } from '../qwen-moe.ts';
import { qwenNext } from '../qwen-next.ts';
import { qwen2 } from '../qwen2.ts';
import { qwen3 } from '../qwen3.ts';

/** Language models that vision-language models are built of. */
export const TEXT_MODELS: readonly Architecture[] = [
  llama,
  mistral,
  ministral3,
  mixtral,
  qwen2,
  qwen3,
  qwen3Moe,
  gemma,
  gemma2,
  gemma3,
  phi3,
  qwenNext,
  gemma3n,
  gemma4,
  glm,
  glm4vText,
  lfm2,
  cohere2,
  llama4,
];
