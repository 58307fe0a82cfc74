import { parseBytes } from '../../core/index.ts';
import type { AllocatorReport } from '../allocator-report.ts';
import type { Signature } from './signature.ts';

const tried =
  (pattern: RegExp) =>
  (text: string): AllocatorReport => {
    const bytes = parseBytes(pattern.exec(text)?.[1] ?? '');
    return { processes: [], ...(bytes === undefined ? {} : { triedBytes: bytes }) };
  };

/** Allocations in system RAM that were refused. Refused, not killed: the limit is RAM plus swap, ulimit or overcommit. */
export const hostMemory: readonly Signature[] = [
  {
    // RAPIDS and CuPy: the class is that of host memory, the memory is the card's.
    id: 'device-memory-error-class',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /std::bad_alloc: out_of_memory: (?:CUDA|RMM)|^cupy\S*OutOfMemoryError|cudaErrorMemoryAllocation/,
    hints: ['out_of_memory: ', 'cupy', 'cudaErrorMemoryAllocation'],
    skim: ['out_of_memory: ', 'OutOfMemoryError', 'cudaErrorMemoryAllocation'],
  },
  {
    id: 'pinned-host-memory',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    // The driver's own log has no exception around it.
    place: 'line',
    pattern: /cudaHostAlloc.*out of memory|on host: CUDA_ERROR_OUT_OF_MEMORY|could not allocate pinned host memory/,
    hints: ['cudaHostAlloc', 'on host: CUDA_ERROR', 'pinned host memory'],
  },
  {
    id: 'torch-cpu-allocator',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern:
      /not enough memory: you tried to allocate|(?:DefaultCPUAllocator|CPUAllocator\S*\]?[^:]*): (?:can't allocate memory|not enough memory)/,
    hints: ['CPUAllocator', 'not enough memory'],
    read: tried(/you tried to allocate (\d+ bytes)/),
  },
  {
    id: 'numpy-memory-error',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /Unable to allocate \d+(?:\.\d+)? ?(?:bytes?|[KMGTP]iB) for an array with shape/,
    hints: ['for an array with shape'],
    read: tried(/Unable to allocate (\d+(?:\.\d+)? ?\w+)/),
  },
  {
    id: 'python-memory-error',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /^(?:builtins\.)?MemoryError(?::|$)/,
    hints: ['MemoryError'],
  },
  {
    id: 'arrow-memory-error',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /^(?:[\w.]+\.)?ArrowMemoryError: |(?:malloc|realloc) of size \d+ failed/,
    hints: ['ArrowMemoryError', 'alloc of size'],
    read: tried(/alloc of size (\d+)/),
  },
  {
    id: 'errno-no-memory',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /\[Errno 12\]|Cannot allocate memory \(os error 12\)|\(os error 12\)/,
    hints: ['Errno 12]', 'os error 12'],
  },
  {
    id: 'windows-commit-limit',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    // The words around the number are in the language of the system.
    pattern: /\[WinError 1455\]|\(os error 1455\)/,
    hints: ['WinError 1455', 'os error 1455'],
  },
  {
    id: 'windows-no-memory',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'line',
    pattern: /\b(?:0x[Cc]0000017|-1073741801)\b/,
    hints: ['0000017', '-1073741801'],
  },
  {
    id: 'java-heap',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /^java\.lang\.OutOfMemoryError\b/,
    hints: ['java.lang.OutOfMemoryError'],
  },
  {
    // Colab and Kaggle say it for the process that cannot.
    id: 'notebook-out-of-ram',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'line',
    pattern: /session crashed after using all available RAM|notebook tried to allocate more memory than is available/,
    hints: ['all available RAM', 'allocate more memory than is available'],
  },
  {
    id: 'bad-alloc',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /std::bad_alloc|std::bad_array_new_length/,
    hints: ['std::bad_a'],
  },
  {
    id: 'fork-refused',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'line',
    pattern: /^(?:[\w./-]+: )*fork: (?:retry: )?Cannot allocate memory/,
    hints: ['fork: '],
    skim: ['fork: retry', 'fork: Cannot'],
  },
  {
    id: 'rust-allocation',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'line',
    pattern: /^memory allocation of \d+ bytes failed/,
    hints: ['memory allocation of'],
    read: tried(/allocation of (\d+ bytes)/),
  },
  {
    id: 'worker-process-died',
    role: 'possible',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern:
      /One of the subprocesses has abruptly died during map operation|BrokenProcessPool|process pool .* terminated abruptly/,
    hints: ['abruptly'],
    confidence: 'medium',
    candidates: ['not_memory'],
  },
];
