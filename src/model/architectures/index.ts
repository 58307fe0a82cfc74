import type { Architecture } from './architecture.ts';
import { llama } from './llama.ts';

/** Every architecture snug can describe; a new one is a file beside this and a line here. */
export const ARCHITECTURES: readonly Architecture[] = [llama];
