import { type AllocatorReport, readAllocatorText } from '../allocator-report.ts';
import type { Signature } from './signature.ts';

/** Driver, maths and communication libraries that want device memory outside PyTorch's allocator. */
export const deviceRuntime: readonly Signature[] = [
  {
    // C and C++ programs that say it on a line of their own.
    id: 'cuda-malloc-failed',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'line',
    pattern: /cudaMalloc(?:Async)? failed: out of memory|EL0004.{0,80}allocate memory|negligible GPU memory available/,
    hints: ['cudaMalloc', 'EL0004', 'negligible GPU memory'],
    skim: ['failed: out of memory', 'EL0004:', 'EL0004]', 'negligible GPU memory'],
  },
  {
    id: 'cuda-runtime-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern:
      /(?:CUDA|HIP|hip|cuda)(?: driver| runtime)? error:? ?(?:\(?2\)?:? ?)?:? ?out of memory|\bcudaMalloc\b.{0,40}out of memory|\bCUDA_ERROR_OUT_OF_MEMORY\b|\bcudaErrorMemoryAllocation\b|\bhipErrorOutOfMemory\b|Triton Error \[(?:CUDA|HIP)\]: out of memory/,
    hints: ['out of memory', 'OUT_OF_MEMORY', 'cudaErrorMemoryAllocation', 'hipErrorOutOfMemory'],
  },
  {
    id: 'library-handle-allocation',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /\b(?:CUBLAS|CUDNN|CUSOLVER|CUSPARSE|CURAND|HIPBLAS|ROCBLAS|CUFFT)_STATUS_ALLOC(?:ATION)?_FAILED\b/,
    hints: ['_STATUS_ALLOC'],
  },
  {
    id: 'library-handle-possible',
    role: 'possible',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern:
      /\b(?:CUBLAS|CUSOLVER|CUSPARSE)_STATUS_NOT_INITIALIZED\b|Create cublas handle failed|\bCUDNN_STATUS_(?:NOT_INITIALIZED|INTERNAL_ERROR)\b/,
    hints: ['STATUS_NOT_INITIALIZED', 'Create cublas handle failed', 'CUDNN_STATUS_INTERNAL_ERROR'],
    confidence: 'low',
    candidates: ['vram_capacity', 'config_bug', 'not_memory'],
  },
  {
    // A full card and a tensor of the wrong layout both end here.
    id: 'cudnn-not-supported',
    role: 'possible',
    kind: 'unknown',
    resource: 'unknown',
    place: 'exception',
    pattern: /\bCUDNN_STATUS_NOT_SUPPORTED\b/,
    hints: ['CUDNN_STATUS_NOT_SUPPORTED'],
    confidence: 'low',
    candidates: ['not_memory', 'vram_capacity'],
  },
  {
    id: 'nccl-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'line',
    pattern: /Cuda failure (?:\d+ )?'out of memory'|Failed to CUDA (?:host )?calloc(?: async)? \d+ bytes/,
    hints: ["'out of memory'", 'CUDA calloc', 'CUDA host calloc'],
  },
  {
    // pythonInterface.c fails only where it asks for managed memory, which paged optimizers live in; WSL has little of it.
    id: 'bitsandbytes-managed-memory',
    role: 'cause',
    kind: 'config_bug',
    resource: 'vram',
    place: 'line',
    pattern: /^Error out of memory at line \d+ in file \S*pythonInterface\.c/,
    hints: ['Error out of memory at line'],
    confidence: 'medium',
    candidates: ['vram_capacity'],
  },
  {
    id: 'bitsandbytes-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'line',
    pattern: /^Error out of memory at line \d+ in file /,
    hints: ['Error out of memory at line'],
  },
  {
    id: 'jax-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    // A TPU's compiler says so before anything runs.
    pattern:
      /RESOURCE_EXHAUSTED: (?:Out of memory\b|Attempting to (?:reserve|allocate)\b|.{0,80}[Rr]an out of memory in memory space)/,
    hints: ['RESOURCE_EXHAUSTED'],
    read: (text) => readAllocatorText(text.replace(/trying to allocate/i, 'Tried to allocate')),
  },
  {
    id: 'tensorflow-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'exception',
    pattern: /OOM when allocating tensor with shape.*device:GPU/,
    hints: ['OOM when allocating'],
    read: readTensorText,
  },
  {
    // Paddle prints its class and a stack before it.
    id: 'paddle-out-of-memory',
    role: 'cause',
    kind: 'vram_capacity',
    resource: 'vram',
    place: 'line',
    pattern: /Out of memory error on GPU \d+\. Cannot allocate/,
    hints: ['Out of memory error on GPU'],
  },
  {
    id: 'vllm-cache-blocks',
    role: 'cause',
    kind: 'config_bug',
    resource: 'vram',
    place: 'exception',
    pattern:
      /No available memory for the cache blocks|To serve at least one request with the models?'?s'? max(?:imum)? (?:seq|model) len|larger than the maximum number of tokens that can be stored in KV cache/,
    hints: ['cache blocks', 'To serve at least one request', 'stored in KV cache'],
    confidence: 'medium',
    candidates: ['vram_capacity'],
  },
  {
    id: 'vllm-startup-memory',
    role: 'cause',
    kind: 'vram_other_process',
    resource: 'vram',
    place: 'exception',
    pattern: /Free memory on device \S* ?\(.{1,60}\) on startup is less than desired GPU memory utilization/,
    hints: ['on startup is less than desired'],
    confidence: 'medium',
    candidates: ['config_bug'],
  },
  {
    id: 'batch-search-reached-zero',
    role: 'cause',
    kind: 'config_bug',
    resource: 'vram',
    place: 'exception',
    pattern: /No executable batch size found, reached zero/,
    hints: ['No executable batch size'],
    confidence: 'medium',
    candidates: ['vram_capacity'],
  },
];

/** Bytes of an element of TensorFlow's types. */
const ELEMENT_BYTES: Readonly<Record<string, number>> = {
  half: 2,
  bfloat16: 2,
  float: 4,
  double: 8,
  int8: 1,
  uint8: 1,
  bool: 1,
  int16: 2,
  int32: 4,
  int64: 8,
  complex64: 8,
};

/** TensorFlow names the tensor instead of its size. */
function readTensorText(text: string): AllocatorReport {
  const match = /with shape\s?\[([\d,\s]*)\] and type (\w+)/.exec(text);
  const element = ELEMENT_BYTES[match?.[2] ?? ''];
  if (!match || element === undefined) return { processes: [] };
  const elements = match[1]!.split(',').reduce((product, size) => product * Number(size), 1);
  return { processes: [], triedBytes: elements * element };
}
