/**
 * PyTorch's own functions: what each allocates, saves and what its derivative allocates. Formulas:
 * https://github.com/pytorch/pytorch/blob/v2.13.0/tools/autograd/derivatives.yaml
 * Every function returns a tensor with one reference of its own.
 */
export { giveAs } from './gradients.ts';
export * from './pointwise.ts';
export * from './products.ts';
export * from './sequences.ts';
export * from './views.ts';
