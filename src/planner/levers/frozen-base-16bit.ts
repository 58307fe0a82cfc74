import type { Lever } from './lever.ts';
import { weightsIn16Bit } from './sixteen-bit.ts';

/** The frozen weights of an adapter run in 16 bits instead of 32; the trained weights keep their dtype. */
export const frozenBase16bit: Lever = {
  id: 'frozen-base-16bit',
  class: 'near',
  title: 'frozen base in 16 bits',
  needs: [],
  survivesCheckpoint: true,
  moves: ['load', 'forward', 'backward', 'optimizer', 'eval', 'save', 'resume'],
  options: (values, surroundings) =>
    values.method === 'full' || values.dtype !== 'fp32' || values.quantization ? [] : [weightsIn16Bit(surroundings)],
  loses: () => 'frozen weights lose precision',
};
