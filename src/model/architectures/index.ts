import { arcee } from './arcee.ts';
import type { Architecture } from './architecture.ts';
import { falcon } from './falcon.ts';
import { gemma, gemma2, gemma3 } from './gemma.ts';
import { gptNeox } from './gpt-neox.ts';
import { gpt2 } from './gpt2.ts';
import { granite } from './granite.ts';
import { llama } from './llama.ts';
import { mistral } from './mistral.ts';
import { mixtral } from './mixtral.ts';
import { olmo, olmo2, olmoe } from './olmo.ts';
import { opt } from './opt.ts';
import { phi } from './phi.ts';
import { phi3 } from './phi3.ts';
import { qwen2Moe, qwen3Moe } from './qwen-moe.ts';
import { qwen2 } from './qwen2.ts';
import { qwen3 } from './qwen3.ts';
import { seedOss } from './seed-oss.ts';
import { smollm3 } from './smollm3.ts';
import { starcoder2 } from './starcoder2.ts';

/** Every architecture snug can describe; a new one is a file beside this and a line here. */
export const ARCHITECTURES: readonly Architecture[] = [
  llama,
  mistral,
  mixtral,
  qwen2,
  qwen3,
  qwen2Moe,
  qwen3Moe,
  gemma,
  gemma2,
  gemma3,
  phi,
  phi3,
  gpt2,
  gptNeox,
  falcon,
  starcoder2,
  olmo,
  olmo2,
  olmoe,
  opt,
  granite,
  smollm3,
  seedOss,
  arcee,
];
