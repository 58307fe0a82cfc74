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

/** The longest messages there are: every clause, several processes, a traceback above and a bar before. */
export const LONGEST = [
  oom({
    processes: [
      [40_001, '3.20 GiB'],
      [40_002, '512.00 MiB'],
      [40_003, '1.01 GiB'],
    ],
  }),
  `RuntimeError: CUDA out of memory. Tried to allocate 740.00 MiB (GPU 3; 31.75 GiB total capacity; 29.12 GiB already allocated; 211.50 MiB free; 30.40 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF`,
  "RuntimeError: [enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 137438953472 bytes. Error code 12 (Cannot allocate memory)",
  "RuntimeError: DataLoader worker (pid 9001) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory. Please try to raise your shared memory limit.",
];
