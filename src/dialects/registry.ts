import { accelerate } from './accelerate/index.ts';
import { accelerateConfig } from './accelerate-config/index.ts';
import { alignmentHandbook } from './alignment-handbook/index.ts';
import { autotrain } from './autotrain/index.ts';
import { axolotl } from './axolotl/index.ts';
import { deepspeed } from './deepspeed/index.ts';
import { deepspeedConfig } from './deepspeed-config/index.ts';
import type { Dialect } from './dialect.ts';
import { hfTrainer } from './hf-trainer/index.ts';
import { litgpt } from './litgpt/index.ts';
import { llamaFactory } from './llama-factory/index.ts';
import { llmFoundry } from './llm-foundry/index.ts';
import { megatron } from './megatron/index.ts';
import { msSwift } from './ms-swift/index.ts';
import { openRlhf } from './openrlhf/index.ts';
import { python } from './python/index.ts';
import { torchrun } from './torchrun/index.ts';
import { torchtune } from './torchtune/index.ts';
import { trl } from './trl/index.ts';
import { unsloth } from './unsloth/index.ts';
import { program, WRAPPERS } from './wrappers/index.ts';
import { xtuner } from './xtuner/index.ts';

/**
 * Every dialect, in the order they are asked; the first that answers has it. Wrappers peel, then launchers, then trainers
 * (the specific before the general), engines by reference.
 */
export const REGISTRY: readonly Dialect[] = [
  // wrappers
  ...WRAPPERS,
  // launchers
  accelerate,
  torchrun,
  deepspeed,
  python,
  // trainers
  autotrain,
  axolotl,
  llamaFactory,
  torchtune,
  litgpt,
  msSwift,
  unsloth,
  llmFoundry,
  megatron,
  openRlhf,
  xtuner,
  alignmentHandbook,
  trl,
  hfTrainer,
  // engines
  accelerateConfig,
  deepspeedConfig,
  // any other program, when nobody else knows it
  program,
];
