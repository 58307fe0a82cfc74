import type { FailureKind, Resource } from '../../src/diagnosis/index.ts';
import { oom } from './texts.ts';

export type Row = readonly [text: string, kind: FailureKind, resource: Resource, lookAlike: string];

/** One text of every family that tools print, and beside it one that reads alike and is not that. */
export const ROWS: Readonly<Record<string, readonly Row[]>> = {
  'device memory, PyTorch': [
    [
      'RuntimeError: CUDA out of memory. Tried to allocate 54.00 MiB (GPU 3; 7.92 GiB total capacity; 7.03 GiB already allocated; 9.31 MiB free; 81.50 MiB cached)',
      'vram_capacity',
      'vram',
      'tip: "RuntimeError: CUDA out of memory. Tried to allocate 54.00 MiB (GPU 3; 7.92 GiB total capacity" means a smaller batch',
    ],
    [oom(), 'vram_capacity', 'vram', `sample 12: ${oom()}`],
    [
      'torch.OutOfMemoryError: HIP out of memory. Tried to allocate 1.14 GiB. GPU 0 has a total capacity of 15.49 GiB of which 22.00 MiB is free. Of the allocated memory 14.90 GiB is allocated by PyTorch, and 101.20 MiB is reserved by PyTorch but unallocated.',
      'vram_capacity',
      'vram',
      'HIP out of the box. Tried to allocate time for it.',
    ],
    [
      'torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 10.11 GiB\nRequested               : 320.00 MiB',
      'vram_capacity',
      'vram',
      'Currently allocated     : 10.11 GiB\nRequested               : 320.00 MiB',
    ],
    [
      'RuntimeError: MPS backend out of memory (MPS allocated: 8.10 GiB, other allocations: 700.25 MiB, max allowed: 9.07 GiB). Tried to allocate 512.00 MiB on shared pool.',
      'vram_capacity',
      'vram',
      'MPS allocated: 8.10 GiB, other allocations: 700.25 MiB',
    ],
    ['RuntimeError: Invalid buffer size: 40.15 GB', 'config_bug', 'vram', 'ValueError: Invalid buffer name: 40.15 GB'],
    [
      'RuntimeError: CNRT out of memory. Tried to allocate 66.00 MiB (MLU 2; 23.00 GiB total capacity; 21.70 GiB already allocated; 33.00 MiB free; 410.00 MiB cached)',
      'vram_capacity',
      'vram',
      'CNRT runtime, memory 23.00 GiB total capacity',
    ],
    [
      'RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! Tried to allocate 6.20 GB',
      'config_bug',
      'vram',
      'Current platform can allocate memory blocks larger than 4GB',
    ],
    [
      'RuntimeError: Native API failed. Native API returns: 40 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)',
      'vram_capacity',
      'vram',
      'RuntimeError: Native API failed. Native API returns: 3 (UR_RESULT_ERROR_INVALID_PLATFORM)',
    ],
    [
      'RuntimeError: Native API failed. (UR_RESULT_ERROR_OUT_OF_HOST_MEMORY)',
      'host_ram',
      'host_ram',
      'RuntimeError: Native API failed. (UR_RESULT_ERROR_HOST_UNREACHABLE)',
    ],
  ],
  'device memory, outside the allocator': [
    ['RuntimeError: CUDA error: out of memory', 'vram_capacity', 'vram', 'RuntimeError: CUDA error: out of range'],
    [
      'torch.AcceleratorError: CUDA driver error: out of memory',
      'vram_capacity',
      'vram',
      'torch.AcceleratorError: CUDA driver error: operation not permitted',
    ],
    [
      'RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED',
      'vram_capacity',
      'vram',
      'RuntimeError: cuDNN error: CUDNN_STATUS_MAPPING_ERROR',
    ],
    [
      'RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`',
      'vram_capacity',
      'vram',
      'RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasSgemm( handle)`',
    ],
    [
      "n2:71:90 [1] include/alloc.h:99 NCCL WARN Cuda failure 'out of memory'",
      'vram_capacity',
      'vram',
      "n2:71:90 [1] include/alloc.h:99 NCCL WARN Cuda failure 'invalid argument'",
    ],
    [
      'n2:71:90 [1] NCCL WARN Failed to CUDA calloc 8388608 bytes',
      'vram_capacity',
      'vram',
      'n2:71:90 [1] NCCL INFO cudaMalloc of 8388608 bytes done',
    ],
    [
      'Error out of memory at line 77 in file /src/csrc/ops.cu',
      'vram_capacity',
      'vram',
      'Error out of bounds at line 77 in file /src/csrc/ops.cu',
    ],
    [
      'Error out of memory at line 414 in file /src/csrc/pythonInterface.cpp',
      'config_bug',
      'vram',
      'no error at line 414 in file /src/csrc/pythonInterface.cpp',
    ],
    [
      'ValueError: To serve at least one request with the models max seq len (32768), (4.00 GiB KV cache is needed',
      'config_bug',
      'vram',
      'ValueError: To serve two models give two names',
    ],
    [
      'ValueError: Free memory on device cuda:1 (9.4/47.4 GiB) on startup is less than desired GPU memory utilization (0.85, 40.3 GiB).',
      'vram_other_process',
      'vram',
      'Free memory on device cuda:1 (39.4/47.4 GiB) on startup',
    ],
    [
      'jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 8589934592 bytes.',
      'vram_capacity',
      'vram',
      'grpc._channel._InactiveRpcError: StatusCode.RESOURCE_EXHAUSTED: quota of requests',
    ],
    [
      'tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with shape[32,2048,4096] and type float on /job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc',
      'vram_capacity',
      'vram',
      'Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.1GiB. The caller indicates that this is not a failure',
    ],
    [
      'RuntimeError: Triton Error [CUDA]: out of memory',
      'vram_capacity',
      'vram',
      'RuntimeError: Triton Error [CUDA]: an illegal memory access was encountered',
    ],
  ],
  'host memory': [
    [
      "RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 51539607552 bytes. Error code 12 (Cannot allocate memory)",
      'host_ram',
      'host_ram',
      'RuntimeError: [enforce fail at inline_container.cc:659] . unexpected pos 4096 vs 3990',
    ],
    ['MemoryError', 'host_ram', 'host_ram', 'except MemoryError: pass'],
    ['OSError: [Errno 12] Cannot allocate memory', 'host_ram', 'host_ram', 'OSError: [Errno 13] Permission denied'],
    [
      'numpy.core._exceptions.MemoryError: Unable to allocate 9.31 GiB for an array with shape (50000, 50000) and data type float32',
      'host_ram',
      'host_ram',
      'Unable to allocate a port for an array of servers',
    ],
    [
      'concurrent.futures.process.BrokenProcessPool: A process in the process pool was terminated abruptly while the future was running or pending.',
      'host_ram',
      'host_ram',
      'the process pool was closed while the future was pending',
    ],
    [
      'safetensors_rust.SafetensorError: Error while deserializing header: 页面文件太小，无法完成操作。 (os error 1455)',
      'host_ram',
      'host_ram',
      'the step took 1455 ms (os error 2)',
    ],
    [
      'RuntimeError: CUDA error: cudaHostAlloc failed: out of memory',
      'host_ram',
      'host_ram',
      'cudaHostAlloc of 4096 bytes took 2 ms',
    ],
    [
      'E0302 10:20:30.400 7 cuda_driver.cc:1183] failed to alloc 4294967296 bytes on host: CUDA_ERROR_OUT_OF_MEMORY: out of memory',
      'host_ram',
      'host_ram',
      'W0302 10:20:30.400 7 driver.cc:11] pinned 4294967296 bytes on host',
    ],
    [
      'oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/job_7,task=python,pid=71,uid=1000',
      'cgroup',
      'host_ram',
      'oom_score_adj=0, constraint on memory: none',
    ],
    ['oom_reaper: reaped process 8812 (python), now anon-rss:0kB', 'host_ram', 'host_ram', 'the reaper: a novel'],
    [
      'slurmstepd: error: Some of your processes may have been killed by the cgroup out-of-memory handler.',
      'cgroup',
      'host_ram',
      'slurmstepd: cgroup handler started',
    ],
    ['    Reason:       OOMKilled', 'cgroup', 'host_ram', '    "oomKilled": false'],
    [
      'The node was low on resource: memory. Threshold quantity: 100Mi',
      'cgroup',
      'host_ram',
      'The node was low on resource: ephemeral-storage.',
    ],
    [
      '(raylet) node_manager.cc:31: 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed',
      'host_ram',
      'host_ram',
      '(raylet) node_manager.cc:31: 0 Workers (tasks / actors) killed due to memory pressure (OOM)',
    ],
  ],
  'shared memory and disk': [
    [
      'ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\u0000',
      'shm',
      'shm',
      'shared memory (shm) is sufficient',
    ],
    [
      'RuntimeError: unable to mmap 4096 bytes from file </torch_91_2>: Cannot allocate memory (12)',
      'shm',
      'shm',
      'unable to open file </torch_notes.txt>',
    ],
    [
      'n2:71:90 [1] NCCL WARN Error while creating shared memory segment /dev/shm/nccl-a1B2c3 (size 33030528)',
      'shm',
      'shm',
      'n2:71:90 [1] NCCL INFO Using shared memory segment /dev/shm/nccl-a1B2c3',
    ],
    [
      "OSError: [Errno 28] No space left on device: 'runs/7'",
      'disk',
      'disk',
      'OSError: [Errno 2] No such file: device',
    ],
    ['OSError: [Errno 122] Disk quota exceeded', 'disk', 'disk', 'disk quota: 40 of 100 GB'],
    [
      'RuntimeError: PytorchStreamWriter failed writing file data/9: file write failed',
      'disk',
      'disk',
      'RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory',
    ],
  ],
};

/** Texts of schedulers, clouds, shells and other frameworks. */
export const ELSEWHERE: readonly Row[] = [
  [
    'OutOfMemoryError: Container killed due to memory usage',
    'cgroup',
    'host_ram',
    'Container killed due to a new deployment',
  ],
  [
    'TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.',
    'cgroup',
    'host_ram',
    'TERM_RUNLIMIT: job killed after reaching LSF run time limit.',
  ],
  [
    '=>> PBS: job killed: mem 71303168kb exceeded limit 67108864kb',
    'cgroup',
    'host_ram',
    '=>> PBS: job killed: walltime 3601 exceeded limit 3600',
  ],
  [
    'slurmstepd: error: Job 71 exceeded memory limit (33554432 > 31457280), being killed',
    'cgroup',
    'host_ram',
    'Job 71 memory limit is 31457280',
  ],
  ['    "OOMKilled": true,', 'cgroup', 'host_ram', '    "OOMKilled": false,'],
  [
    'Your session crashed after using all available RAM.',
    'host_ram',
    'host_ram',
    'Your session uses 4 GB of all available RAM, relax',
  ],
  ['java.lang.OutOfMemoryError: Java heap space', 'host_ram', 'host_ram', 'java.lang.IllegalStateException: heap'],
  [
    'Process finished with exit code -1073741801 (0xC0000017)',
    'host_ram',
    'host_ram',
    'Process finished with exit code -1073741819 (0xC0000005)',
  ],
  [
    'RuntimeError: $ Torch: not enough memory: you tried to allocate 41GB. Buy new RAM!',
    'host_ram',
    'host_ram',
    'RuntimeError: not enough values: you tried to unpack 3',
  ],
  [
    'MemoryError: std::bad_alloc: out_of_memory: CUDA error at: /rmm/mr/cuda.hpp',
    'vram_capacity',
    'vram',
    'rmm: out_of_memory handler set',
  ],
  [
    'cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,192 bytes',
    'vram_capacity',
    'vram',
    'cupy.cuda.compiler.CompileException: no memory qualifier',
  ],
  [
    'ggml_backend_alloc: allocating 812.00 MiB on device 0: cudaMalloc failed: out of memory',
    'vram_capacity',
    'vram',
    'ggml_backend_alloc: cudaMalloc of 812.00 MiB',
  ],
  [
    'jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Attempting to reserve 6.11G at the bottom of memory.',
    'vram_capacity',
    'vram',
    'ApiError: RESOURCE_EXHAUSTED: Attempt limit of the project',
  ],
  [
    'RuntimeError: unable to allocate shared memory(shm) for file </torch_9_1>: Success (0)',
    'shm',
    'shm',
    'RuntimeError: unable to allocate a port',
  ],
];

/** Somebody or something ended a process, and the text does not say who. */
export const UNDECIDED: readonly (readonly [string, string])[] = [
  ['zsh: killed     python train.py', 'zsh: command not found: killed'],
  ['run.sh: 12: Killed', 'run.sh: 12: Skilled'],
  ['=   KILLED BY SIGNAL: 9 (Killed)', 'received signal 15'],
  ['The kernel appears to have died. It will restart automatically.', 'The kernel appears to be busy.'],
  ['A worker died or was killed while executing a task by an unexpected system error.', 'no worker died'],
];

/** Texts that look like memory and are never that. */
export const NEVER: readonly string[] = [
  'RuntimeError: CUDA error: device-side assert triggered',
  '../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.',
  'RuntimeError: CUDA error: an illegal memory access was encountered',
  'RuntimeError: CUDA error: misaligned address',
  'RuntimeError: CUDA error: invalid device ordinal',
  'RuntimeError: CUDA error: no kernel image is available for execution on the device',
  'RuntimeError: CUDA error: invalid device function',
  'RuntimeError: The NVIDIA driver on your system is too old: CUDA driver version is insufficient for CUDA runtime version',
  'Failed to initialize NVML: Driver/library version mismatch',
  'RuntimeError: CUDA error: uncorrectable ECC error encountered',
  '[Mon Mar  2 08:11:40 2026] NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.',
  'Unable to determine the device handle for GPU0000:3B:00.0: Unknown Error',
  "ValueError: invalid literal for int() with base 10: 'MIG-77aa'",
  'triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 98560, Hardware limit: 65536.',
  'triton.runtime.errors.OutOfResources: out of resource: tensor memory, Required: 640, Hardware limit: 512.',
  'RuntimeError: FlashAttention only supports Ampere GPUs or newer.',
  'RuntimeError: unexpected EOF, expected 812 more bytes. The file might be corrupted.',
  'safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer',
  'requests.exceptions.HTTPError: 429 Client Error: Too Many Requests for url',
  'ValueError: Loss is nan, stopping training',
  'RuntimeError: probability tensor contains either `inf`, `nan` or element < 0',
  "ModuleNotFoundError: No module named 'flash_attn'",
  'OSError: You are trying to access a gated repo.',
  '[rank1]:[E ProcessGroupNCCL.cpp:616] [Rank 1] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=3) ran for 600000 ms',
  'RuntimeError: DataLoader worker (pid 91) is killed by signal: Aborted. ',
  'slurmstepd: error: *** STEP 7.0 ON n2 CANCELLED AT 2026-03-02T08:11:40 DUE TO PREEMPTION ***',
];

/** Met and dealt with, or only said: no verdict while the run goes on. */
export const GOES_ON: readonly string[] = [
  '| WARNING: ran out of memory, skipping batch',
  'Batch size 64 failed, trying batch size 32',
  'RuntimeWarning: CUDA out of memory detected. Train microbatch size will be decreased from 64 -> 32.',
  'pytorch allocator cache flushes since last step. this happens when there is high memory pressure',
  'AUTOTUNE: triton_mm_7 ran out of memory (OutOfMemoryError), ignoring this choice',
  'W0000 tensorflow: Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.2GiB with freed_by_count=0. This is not a failure',
];

/** Words of others: help, samples, tables, settings. */
export const QUOTED: readonly string[] = [
  'MA 20.11 GB         Max_MA 21.70 GB         CA 22.90 GB         Max_CA 23 GB',
  'CPU Virtual Memory:  used = 61.3 GB, percent = 24.3%',
  '# uncomment if you run out of memory',
  'reduce the batch size if you get CUDA out of memory',
  '│ user │ I get torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. What now? │',
  '{"messages": [{"role": "user", "content": "RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB"}]}',
  '    "answer": "MemoryError means that RAM ran out",',
  '> torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB',
  '  --retry-on-oom   start again after CUDA out of memory',
  "os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'max_split_size_mb:64'  # CUDA out of memory",
  '|            CUDA OOMs: 0            |        cudaMalloc retries: 0         |',
  "ray: set RAY_memory_usage_threshold to change when 'node running low' is said",
  'kernel: Out of memory handling is on',
];

/** Resources that snug moves levers for. */
export const MEMORY: readonly (Resource | undefined)[] = ['vram', 'host_ram', 'shm'];

/** One refresh of a training bar. */
export const bar = (step: number): string => `train: ${step}%|##   | ${step}/100 [00:10<00:50,  1.10it/s]`;
