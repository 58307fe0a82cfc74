import type { Evidence } from '../../src/diagnosis/index.ts';
import { classify, readLog } from '../../src/diagnosis/index.ts';

/** Figures of one allocator message, as its text writes them. */
export interface Figures {
  readonly tried?: string;
  readonly total?: string;
  readonly free?: string;
  readonly allocated?: string;
  readonly stranded?: string;
  /** `this process has … memory in use`. */
  readonly self?: string;
  readonly processes?: readonly (readonly [pid: number, size: string])[];
}

/** Message of torch 2.2 and later, without the class in front. */
export function newText(figures: Figures = {}): string {
  const { tried = '1.37 GiB', total = '23.62 GiB', free = '811.00 MiB', allocated = '21.90 GiB' } = figures;
  const { stranded = '402.50 MiB', self = '22.80 GiB', processes = [] } = figures;
  const others = processes.map(([pid, size]) => `Process ${pid} has ${size} memory in use. `).join('');
  const own = self === '' ? '' : `Including non-PyTorch memory, this process has ${self} memory in use. `;
  return `CUDA out of memory. Tried to allocate ${tried}. GPU 1 has a total capacity of ${total} of which ${free} is free. ${others}${own}Of the allocated memory ${allocated} is allocated by PyTorch, and ${stranded} is reserved by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.`;
}

/** The exception's own line. */
export const oom = (figures: Figures = {}): string => `torch.OutOfMemoryError: ${newText(figures)}`;

/** A traceback whose frames are `function: code`, and the exception that ends it. */
export const traceback = (frames: readonly string[], exception: string): string =>
  [
    'Traceback (most recent call last):',
    ...frames.flatMap((frame) => {
      const [func, ...code] = frame.split(': ');
      return [`  File "/srv/lib/part.py", line 77, in ${func}`, `    ${code.join(': ') || 'pass'}`];
    }),
    exception,
  ].join('\n');

const encode = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Verdict on a log alone. */
export const readText = (text: string) => classify(readLog(encode(text)));

/** Evidence of an attempt that printed `text` and failed with exit code 1, unless told otherwise. */
export const attempt = (text: string, more: Partial<Evidence> = {}): Evidence => ({
  ...readLog(encode(text)),
  exitCode: 1,
  ...more,
});
