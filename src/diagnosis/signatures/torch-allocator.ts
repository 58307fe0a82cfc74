import { readAllocatorText, readRows } from '../allocator-report.ts';
import type { Signature } from './signature.ts';

const SIZE = String.raw`:?\s*(\d+(?:\.\d+)?\s?(?:bytes?|[KMGT]i?B))`;

/** PyTorch's own allocators, one text per device; source: torch `c10/cuda/CUDACachingAllocator.cpp` and its forks. */
export const torchAllocator: readonly Signature[] = [
  {
    id: 'torch-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /(?:CUDA|HIP|XPU|NPU|CNRT|MUSA|HPU|MLU) out of memory\b(?!\s+detected)/,
    hints: ['out of memory'],
    read: readAllocatorText,
  },
  {
    id: 'torch-async-allocator',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /Allocation on device \d* ?would exceed allowed memory/,
    hints: ['exceed allowed memory'],
    rows: true,
    read: (text) =>
      readRows(
        {
          allocatedBytes: new RegExp(String.raw`Currently allocated\s*${SIZE}`),
          triedBytes: new RegExp(String.raw`Requested\s*${SIZE}`),
          totalBytes: new RegExp(String.raw`Device limit\s*${SIZE}`),
          freeBytes: new RegExp(String.raw`Free \(according to CUDA\)\s*${SIZE}`),
        },
        text,
      ),
  },
  {
    id: 'mps-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /MPS backend out of memory/,
    hints: ['MPS backend'],
    read: readMpsText,
  },
  {
    id: 'mps-buffer-size',
    role: 'cause',
    kind: 'config_bug',
    resource: 'vram',
    place: 'exception',
    pattern: /Invalid buffer size: \d+(?:\.\d+)? [KMGT]i?B/,
    hints: ['Invalid buffer size'],
    confidence: 'medium',
    candidates: ['vram_capacity'],
    read: readMpsText,
  },
  {
    id: 'xpu-device-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern:
      /UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY|PI_ERROR_OUT_OF_RESOURCES|Allocation is out of device memory on current platform/,
    hints: ['OUT_OF_DEVICE_MEMORY', 'PI_ERROR_OUT_OF_RESOURCES', 'out of device memory'],
  },
  {
    id: 'xpu-resources',
    role: 'possible',
    kind: 'unknown',
    resource: 'unknown',
    place: 'exception',
    pattern: /UR_RESULT_ERROR_OUT_OF_RESOURCES/,
    hints: ['UR_RESULT_ERROR_OUT_OF_RESOURCES'],
    confidence: 'low',
    candidates: ['vram_capacity', 'not_memory'],
  },
  {
    id: 'xpu-host-memory',
    role: 'cause',
    kind: 'host_ram',
    resource: 'host_ram',
    place: 'exception',
    pattern: /UR_RESULT_ERROR_OUT_OF_HOST_MEMORY|PI_ERROR_OUT_OF_HOST_MEMORY/,
    hints: ['OUT_OF_HOST_MEMORY'],
  },
  {
    id: 'xpu-single-block',
    role: 'cause',
    kind: 'config_bug',
    resource: 'vram',
    place: 'exception',
    pattern: /can NOT allocate memory block with size larger than/,
    hints: ['can NOT allocate memory block'],
    confidence: 'medium',
    candidates: ['vram_capacity'],
  },
  {
    // The class alone, its message cut off by a log's length limit. Ray has a class of the same name for host memory.
    id: 'torch-out-of-memory-class',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /^(?:torch\.(?:cuda\.)?)?OutOfMemoryError(?::(?! Container killed)|$)/,
    hints: ['OutOfMemoryError'],
    read: readAllocatorText,
  },
];

/** MPS counts in 1024s, though older versions write `GB`. */
function readMpsText(text: string) {
  const binary = text.replace(/(\d )([KMGT])B\b/g, '$1$2iB');
  const report = readRows(
    {
      allocatedBytes: new RegExp(`MPS allocated${SIZE}`),
      othersBytes: new RegExp(`other allocations${SIZE}`),
      totalBytes: new RegExp(`max allowed${SIZE}`),
      triedBytes: new RegExp(`(?:Tried to allocate|Invalid buffer size)${SIZE}`),
    },
    binary,
  );
  return report;
}
