/**
 * Builders of torchtune by the model of the Hub that has the same shape. Builders take no config.json: what a checkpoint
 * folder holds must fit them. Source: torchtune/models/<family>/_model_builders.py of 0.6.1 and of the development branch.
 */
const MODELS: Readonly<Record<string, string>> = {
  code_llama2_7b: 'codellama/CodeLlama-7b-hf',
  code_llama2_13b: 'codellama/CodeLlama-13b-hf',
  gemma_2b: 'google/gemma-2b',
  gemma_7b: 'google/gemma-7b',
  gemma2_2b: 'google/gemma-2-2b',
  gemma2_9b: 'google/gemma-2-9b',
  gemma2_27b: 'google/gemma-2-27b',
  llama2_7b: 'meta-llama/Llama-2-7b-hf',
  llama2_13b: 'meta-llama/Llama-2-13b-hf',
  llama2_70b: 'meta-llama/Llama-2-70b-hf',
  llama3_8b: 'meta-llama/Meta-Llama-3-8B',
  llama3_70b: 'meta-llama/Meta-Llama-3-70B',
  llama3_1_8b: 'meta-llama/Llama-3.1-8B',
  llama3_1_70b: 'meta-llama/Llama-3.1-70B',
  llama3_1_405b: 'meta-llama/Llama-3.1-405B',
  llama3_2_1b: 'meta-llama/Llama-3.2-1B',
  llama3_2_3b: 'meta-llama/Llama-3.2-3B',
  llama3_3_70b: 'meta-llama/Llama-3.3-70B-Instruct',
  mistral_7b: 'mistralai/Mistral-7B-v0.1',
  phi3_mini: 'microsoft/Phi-3-mini-4k-instruct',
  // With separate projections, as torchtune builds it.
  phi4_14b: 'unsloth/phi-4',
  qwen2_0_5b: 'Qwen/Qwen2-0.5B-Instruct',
  qwen2_1_5b: 'Qwen/Qwen2-1.5B-Instruct',
  qwen2_7b: 'Qwen/Qwen2-7B-Instruct',
  qwen2_5_0_5b: 'Qwen/Qwen2.5-0.5B',
  qwen2_5_1_5b_base: 'Qwen/Qwen2.5-1.5B',
  qwen2_5_1_5b_instruct: 'Qwen/Qwen2.5-1.5B-Instruct',
  qwen2_5_3b: 'Qwen/Qwen2.5-3B',
  qwen2_5_7b_base: 'Qwen/Qwen2.5-7B',
  qwen2_5_7b_instruct: 'Qwen/Qwen2.5-7B-Instruct',
  qwen2_5_14b_base: 'Qwen/Qwen2.5-14B',
  qwen2_5_14b_instruct: 'Qwen/Qwen2.5-14B-Instruct',
  qwen2_5_32b_base: 'Qwen/Qwen2.5-32B',
  qwen2_5_32b_instruct: 'Qwen/Qwen2.5-32B-Instruct',
  qwen2_5_72b_base: 'Qwen/Qwen2.5-72B',
  qwen2_5_72b_instruct: 'Qwen/Qwen2.5-72B-Instruct',
  qwen3_0_6b_base: 'Qwen/Qwen3-0.6B-Base',
  qwen3_0_6b_instruct: 'Qwen/Qwen3-0.6B',
  qwen3_1_7b_base: 'Qwen/Qwen3-1.7B-Base',
  qwen3_1_7b_instruct: 'Qwen/Qwen3-1.7B',
  qwen3_4b_base: 'Qwen/Qwen3-4B-Base',
  qwen3_4b_instruct: 'Qwen/Qwen3-4B',
  qwen3_8b_base: 'Qwen/Qwen3-8B-Base',
  qwen3_8b_instruct: 'Qwen/Qwen3-8B',
  qwen3_14b_base: 'Qwen/Qwen3-14B-Base',
  qwen3_14b_instruct: 'Qwen/Qwen3-14B',
  qwen3_32b: 'Qwen/Qwen3-32B',
  smollm2_135m: 'HuggingFaceTB/SmolLM2-135M',
  smollm2_360m: 'HuggingFaceTB/SmolLM2-360M',
  smollm2_1_7b: 'HuggingFaceTB/SmolLM2-1.7B',
};

/** Families whose 4-bit builders have names of their own; the others say `quantize_base: True`. */
const NAMED_4_BIT = /^(?:code_llama2|gemma2?|llama2|llama3(?:_[123])?|llama3_2_vision|mistral|phi[34])_/;

/** `torchtune.models.llama3_2.qlora_llama3_2_1b` in its parts. */
export interface Builder {
  /** All before the name, its dot included. */
  readonly module: string;
  readonly adapter: 'none' | 'lora' | 'qlora';
  /** `llama3_2_1b` */
  readonly base: string;
}

export function parseBuilder(component: string): Builder {
  const dot = component.lastIndexOf('.') + 1;
  const name = component.slice(dot);
  const [, adapter, base] = /^(q?lora)_(.+)$/.exec(name) ?? [];
  const kind = adapter === 'qlora' || adapter === 'lora' ? adapter : 'none';
  return { module: component.slice(0, dot), adapter: kind, base: base ?? name };
}

export const modelOf = ({ base }: Builder): string | undefined => MODELS[base];

export const hasNamedQlora = ({ base }: Builder): boolean => NAMED_4_BIT.test(base) && base in MODELS;

/** transformers has one projection where torchtune has three. */
export const fusesProjections = ({ base }: Builder): boolean => base.startsWith('phi3');
