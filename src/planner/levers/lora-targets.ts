import type { Lever } from './lever.ts';

/** What the paper on LoRA adapts, by the names most architectures give them. */
const QUERY_AND_VALUE = ['q_proj', 'v_proj'];

/** Adapters beside the query and value projections alone. Source: https://arxiv.org/abs/2106.09685, section 7.1 */
export const loraTargets: Lever = {
  id: 'lora-targets',
  class: 'method',
  title: 'LoRA on fewer layers',
  needs: [],
  survivesCheckpoint: false,
  moves: ['forward', 'backward', 'optimizer', 'save', 'resume'],
  options: ({ lora }) => {
    if (!lora || lora.targetModules === 'default') return [];
    if (lora.targetModules === 'all-linear') return [{ lora: { ...lora, targetModules: 'default' } }];
    const fewer = lora.targetModules.filter((name) => QUERY_AND_VALUE.includes(name));
    return fewer.length > 0 && fewer.length < lora.targetModules.length
      ? [{ lora: { ...lora, targetModules: fewer } }]
      : [];
  },
  loses: () => 'fewer layers are adapted',
};
