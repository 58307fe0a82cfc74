import type { Lora, Objective } from '../../spec/index.ts';
import type { Lever } from './lever.ts';

/** PEFT trains the head of a classifier beside the adapters by itself. */
const trainedHead = (objective: Objective): readonly string[] =>
  objective === 'classification' || objective === 'reward' ? ['score'] : [];

const adapters = (objective: Objective): Lora => ({
  r: 16,
  loraAlpha: 32,
  loraDropout: 0,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: trainedHead(objective),
});

/** Low-rank adapters on every linear layer instead of training all weights: another method, with another result. */
export const lora: Lever = {
  id: 'lora',
  class: 'method',
  title: 'LoRA instead of full fine-tuning',
  needs: [],
  survivesCheckpoint: false,
  moves: ['forward', 'backward', 'optimizer', 'eval', 'save', 'resume'],
  options: ({ method, objective }) => (method === 'full' ? [{ method: 'lora', lora: adapters(objective) }] : []),
  loses: () => 'trains adapters of rank 16, not all weights; wants a higher learning rate',
};
