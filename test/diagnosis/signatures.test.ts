import { describe, expect, it } from 'vitest';
import { GiB, MiB } from '../../src/core/index.ts';
import { newText, oom, readText, traceback } from './texts.ts';

const device = (text: string) => {
  const failure = readText(text);
  return failure && failure.resource === 'vram' ? failure.numbers : undefined;
};

describe("PyTorch's device allocator", () => {
  it('reads the text of 1.0 to 1.3, where the cache is named without its allocated part', () => {
    expect(
      device(
        'RuntimeError: CUDA out of memory. Tried to allocate 96.00 MiB (GPU 2; 10.73 GiB total capacity; 9.41 GiB already allocated; 31.56 MiB free; 512.25 MiB cached)',
      ),
    ).toEqual({
      triedBytes: 96 * MiB,
      totalBytes: Math.round(10.73 * GiB),
      allocatedBytes: Math.round(9.41 * GiB),
      freeBytes: Math.round(31.56 * MiB),
      reservedUnallocatedBytes: Math.round(512.25 * MiB),
    });
  });

  it('reads the text of 1.4 to 2.0, where the reserve is the whole of it', () => {
    const text =
      'torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 640.00 MiB (GPU 0; 15.74 GiB total capacity; 13.02 GiB already allocated; 219.62 MiB free; 15.50 GiB allowed; 14.27 GiB reserved in total by PyTorch) If reserved memory is >> allocated memory try setting max_split_size_mb';
    expect(device(text)).toMatchObject({
      triedBytes: 640 * MiB,
      allocatedBytes: Math.round(13.02 * GiB),
      reservedUnallocatedBytes: Math.round(14.27 * GiB) - Math.round(13.02 * GiB),
    });
  });

  it('reads 2.1, which misspells a word', () => {
    const text = newText({ self: '' }).replace('capacity', 'capacty');
    expect(device(`torch.cuda.OutOfMemoryError: ${text}`)).toMatchObject({ totalBytes: Math.round(23.62 * GiB) });
  });

  it('reads 2.2 and later under every class name, with optional clauses', () => {
    const full = newText({ processes: [[4711, '300.00 MiB']] }).replace(
      ', and 402',
      ', with 64.00 MiB allocated in private pools (e.g., CUDA Graphs), and 402',
    );
    for (const name of ['torch.cuda.OutOfMemoryError', 'torch.OutOfMemoryError', 'OutOfMemoryError', 'RuntimeError']) {
      expect(device(`${name}: ${full}`), name).toMatchObject({
        triedBytes: Math.round(1.37 * GiB),
        freeBytes: 811 * MiB,
        allocatedBytes: Math.round(21.9 * GiB),
        reservedUnallocatedBytes: Math.round(402.5 * MiB),
      });
    }
  });

  it('reads a message whose device number is a control character, or that was cut off', () => {
    expect(device(oom().replace('GPU 1 ', 'GPU \u0001 '))).toMatchObject({ totalBytes: Math.round(23.62 * GiB) });
    expect(device(oom().replace('GPU 1 ', 'GPU  '))).toMatchObject({ totalBytes: Math.round(23.62 * GiB) });
    expect(device('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 58.00 MiB. GPU')).toEqual({
      triedBytes: 58 * MiB,
    });
    expect(device('torch.OutOfMemoryError')).toEqual({});
  });

  it('reads a message wrapped hard, also inside a word', () => {
    const narrow = oom().replace(/(.{77})/g, '$1\n');
    expect(device(narrow)).toEqual(device(oom()));
    expect(device(oom().replace('by PyTorch but', '\nby PyTorch but'))).toEqual(device(oom()));
  });

  it('reads the rows of the asynchronous allocator', () => {
    const rows = [
      'torch.OutOfMemoryError: Allocation on device 0 would exceed allowed memory. (out of memory)',
      'Currently allocated     : 6.12 GiB',
      'Requested               : 1.75 GiB',
      'Device limit            : 7.79 GiB',
      'Free (according to CUDA): 14.81 MiB',
      'PyTorch limit (set by user-supplied memory fraction)',
      '                        : 17179869184.00 GiB',
    ].join('\n');
    expect(device(rows)).toEqual({
      allocatedBytes: Math.round(6.12 * GiB),
      triedBytes: 1.75 * GiB,
      totalBytes: Math.round(7.79 * GiB),
      freeBytes: Math.round(14.81 * MiB),
    });
  });

  it.each([
    'RuntimeError: HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.98 GiB of which 0 bytes is free.',
    'RuntimeError: XPU out of memory. Tried to allocate 130.00 MiB. GPU 0 has a total capacity of 15.11 GiB.',
    'RuntimeError: NPU out of memory. Tried to allocate 1.26 GiB (NPU 3; 60.97 GiB total capacity; 55.20 GiB already allocated; 55.20 GiB current active; 720.10 MiB free; 57.90 GiB reserved in total by PyTorch)',
    'RuntimeError: MPS backend out of memory (MPS allocated: 16.90 GiB, other allocations: 1.05 GiB, max allowed: 18.13 GiB). Tried to allocate 384.00 MiB on private pool.',
    'RuntimeError: Allocation is out of device memory on current platform.',
    'RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)',
  ])('knows %s', (text) => {
    expect(readText(text)).toMatchObject({ kind: 'vram_capacity', resource: 'vram' });
  });
});

describe('figures of other backends, to the byte', () => {
  it.each([
    [
      'RuntimeError: HIP out of memory. Tried to allocate 1.75 GiB. GPU 0 has a total capacity of 15.98 GiB of which 0 bytes is free. Of the allocated memory 14.25 GiB is allocated by PyTorch, and 96.00 KiB is reserved by PyTorch but unallocated.',
      {
        triedBytes: 1.75 * GiB,
        totalBytes: Math.round(15.98 * GiB),
        freeBytes: 0,
        allocatedBytes: 14.25 * GiB,
        reservedUnallocatedBytes: 96 * 1024,
      },
    ],
    [
      'torch.OutOfMemoryError: XPU out of memory. Tried to allocate 130.00 MiB. GPU 0 has a total capacity of 15.11 GiB. Of the allocated memory 14.50 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but unallocated.',
      {
        triedBytes: 130 * MiB,
        totalBytes: Math.round(15.11 * GiB),
        allocatedBytes: 14.5 * GiB,
        reservedUnallocatedBytes: 12 * MiB,
      },
    ],
    [
      'RuntimeError: NPU out of memory. Tried to allocate 1.25 GiB (NPU 3; 60.97 GiB total capacity; 55.20 GiB already allocated; 55.30 GiB current active; 720.10 MiB free; 57.90 GiB reserved in total by PyTorch)',
      {
        triedBytes: 1.25 * GiB,
        totalBytes: Math.round(60.97 * GiB),
        freeBytes: Math.round(720.1 * MiB),
        allocatedBytes: Math.round(55.2 * GiB),
        reservedUnallocatedBytes: Math.round(57.9 * GiB) - Math.round(55.2 * GiB),
      },
    ],
    [
      'jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7784628224 bytes.',
      { triedBytes: 7784628224 },
    ],
    [
      'jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 30.50GiB.',
      { triedBytes: 30.5 * GiB },
    ],
    [
      'ResourceExhaustedError: OOM when allocating tensor with shape[8,2048,32000] and type half on /job:localhost/replica:0/task:0/device:GPU:1 by allocator GPU_1_bfc',
      { triedBytes: 8 * 2048 * 32000 * 2 },
    ],
  ])('%s', (text, numbers) => {
    expect(device(text)).toEqual(numbers);
  });
});

describe('texts and their look-alikes', () => {
  const kinds = (text: string) => [readText(text)?.kind, readText(text)?.resource];

  it.each([
    // device, outside the allocator
    ['RuntimeError: CUDA error: out of memory', 'vram_capacity', 'vram'],
    ['torch.AcceleratorError: CUDA error: out of memory', 'vram_capacity', 'vram'],
    ['RuntimeError: CUDA driver error: out of memory', 'vram_capacity', 'vram'],
    [
      'RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasLtCreate(handle)`',
      'vram_capacity',
      'vram',
    ],
    ["gpu07:918:1022 [3] misc/alloc.cc:41 NCCL WARN Cuda failure 2 'out of memory'", 'vram_capacity', 'vram'],
    ['gpu07:918:1022 [3] NCCL WARN Failed to CUDA calloc async 24 bytes', 'vram_capacity', 'vram'],
    ['Error out of memory at line 88 in file /tmp/build/csrc/ops.cu', 'vram_capacity', 'vram'],
    ['RuntimeError: Triton Error [CUDA]: out of memory', 'vram_capacity', 'vram'],
    [
      'jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7.25GiB.',
      'vram_capacity',
      'vram',
    ],
    ['RuntimeError: No executable batch size found, reached zero.', 'config_bug', 'vram'],
    [
      'ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.',
      'config_bug',
      'vram',
    ],
    ['RuntimeError: Invalid buffer size: 61.04 GiB', 'config_bug', 'vram'],
    ['mxnet.base.MXNetError: storage.h:8: cudaMalloc retry failed: out of memory', 'vram_capacity', 'vram'],
    ['Out of memory error on GPU 2. Cannot allocate 1.50GB memory on GPU 2', 'vram_capacity', 'vram'],
    // host
    [
      "RuntimeError: [enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to allocate 9663676416 bytes. Error code 12 (Cannot allocate memory)",
      'host_ram',
      'host_ram',
    ],
    [
      'RuntimeError: [enforce fail at alloc_cpu.cpp:80] data. DefaultCPUAllocator: not enough memory: you tried to allocate 77 bytes.',
      'host_ram',
      'host_ram',
    ],
    ['MemoryError', 'host_ram', 'host_ram'],
    ['MemoryError: unable to grow the buffer', 'host_ram', 'host_ram'],
    ['OSError: [Errno 12] Cannot allocate memory', 'host_ram', 'host_ram'],
    [
      'numpy._core._exceptions._ArrayMemoryError: Unable to allocate 18.6 GiB for an array with shape (5000, 1000000) and data type float32',
      'host_ram',
      'host_ram',
    ],
    ["terminate called after throwing an instance of 'std::bad_alloc'", 'host_ram', 'host_ram'],
    ['pyarrow.lib.ArrowMemoryError: malloc of size 4294967296 failed', 'host_ram', 'host_ram'],
    ['OSError: [WinError 1455] Die Auslagerungsdatei ist zu klein', 'host_ram', 'host_ram'],
    [
      'Mar  3 04:11:09 node3 kernel: Out of memory: Killed process 8812 (python) total-vm:91234kB, anon-rss:80000kB',
      'host_ram',
      'host_ram',
    ],
    ['[ 8123.551200] Memory cgroup out of memory: Killed process 77 (python3) total-vm:1kB', 'cgroup', 'host_ram'],
    [
      'slurmstepd-c14: error: Detected 3 oom_kill events in StepId=99120.0. Some of the step tasks have been OOM Killed.',
      'cgroup',
      'host_ram',
    ],
    ['srun: error: c14: task 2: Out Of Memory', 'cgroup', 'host_ram'],
    ['      reason: OOMKilled', 'cgroup', 'host_ram'],
    ['ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.', 'host_ram', 'host_ram'],
    ['RuntimeError: DataLoader worker (pid 40112) is killed by signal: Killed. ', 'dataloader_ram', 'host_ram'],
    ['RuntimeError: One of the subprocesses has abruptly died during map operation.', 'host_ram', 'host_ram'],
    ['/opt/train.sh: fork: Cannot allocate memory', 'host_ram', 'host_ram'],
    // shared memory
    ['Bus error (core dumped)', 'shm', 'shm'],
    [
      'ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\u0000',
      'shm',
      'shm',
    ],
    [
      "RuntimeError: DataLoader worker (pid 5) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
      'shm',
      'shm',
    ],
    ['RuntimeError: unable to write to file </torch_1193_88120_3>: No space left on device (28)', 'shm', 'shm'],
    ["OSError: [Errno 28] No space left on device: '/dev/shm/nccl-Hd81xa'", 'shm', 'shm'],
    // disk
    ["OSError: [Errno 28] No space left on device: '/data/out/checkpoint-40/optimizer.pt'", 'disk', 'disk'],
    ['OSError: [Errno 122] Disk quota exceeded', 'disk', 'disk'],
    [
      'safetensors_rust.SafetensorError: Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })',
      'disk',
      'disk',
    ],
    [
      'RuntimeError: [enforce fail at inline_container.cc:603] . PytorchStreamWriter failed writing file data/41: file write failed',
      'disk',
      'disk',
    ],
    // not memory
    [
      'triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 147456, Hardware limit: 101376.',
      'not_memory',
      'none',
    ],
    ['RuntimeError: CUDA error: device-side assert triggered', 'not_memory', 'none'],
    ['RuntimeError: CUDA error: an illegal memory access was encountered', 'not_memory', 'none'],
    ['RuntimeError: CUDA error: uncorrectable ECC error encountered', 'not_memory', 'none'],
    ["ValueError: invalid literal for int() with base 10: 'GPU-8932f937'", 'not_memory', 'none'],
    ['RuntimeError: DataLoader worker (pid 5) is killed by signal: Segmentation fault. ', 'not_memory', 'none'],
    [
      'google.api_core.exceptions.ResourceExhausted: 429 RESOURCE_EXHAUSTED: quota of tokens a minute',
      'not_memory',
      'none',
    ],
    ['EOFError: Ran out of input', 'not_memory', 'none'],
    ['OSError: [Errno 24] Too many open files: </torch_88_1_0>', 'not_memory', 'none'],
    [
      'slurmstepd: error: *** JOB 71 ON c14 CANCELLED AT 2031-02-03T04:05:06 DUE TO TIME LIMIT ***',
      'not_memory',
      'none',
    ],
    ['KeyError: "memory"', 'not_memory', 'none'],
  ])('%s -> %s', (text, kind, resource) => {
    expect(kinds(text)).toEqual([kind, resource]);
  });

  it.each([
    // words without the place of an exception
    'hint: on CUDA out of memory. Tried to allocate messages, lower the batch',
    '"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB"',
    '{"text": "RuntimeError: CUDA error: out of memory", "label": 1}',
    '> RuntimeError: CUDA out of memory. Tried to allocate 3.00 GiB',
    '- MemoryError',
    '| MemoryError |',
    '│ torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB │',
    '  --test_oom_error  raises MemoryError once',
    'Cuda OOMs: 0            |        cudaMalloc retries: 0',
    '{"oom_rate": 0.0, "num_ooms": 0}',
    'the job was not OOMKilled: "OOMKilled": false',
    'exit code 13700',
    '0 Workers (tasks / actors) killed due to memory pressure (OOM), 1 Workers crashed due to other reasons',
    'W0000 BFC allocator: failed to allocate 2.1G, retrying',
    'took the other fork: no way back',
    'Bus errors: none',
    'Killed 12 idle connections',
    '[rank0]: all ranks exited with exitcode: 0',
    'killing subprocess 4120',
  ])('says nothing of: %s', (text) => {
    expect(readText(text)).toMatchObject({ kind: 'unknown', candidates: [], evidence: [] });
  });

  it("does not take an exception's quotation for its cause", () => {
    const text = traceback(
      ['load: json.loads(row)'],
      'ValueError: bad row: "CUDA out of memory. Tried to allocate 9.00 GiB"',
    );
    expect(readText(text)).toMatchObject({ kind: 'not_memory' });
  });

  it('takes two-valued texts as possible only', () => {
    expect(
      readText('RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`'),
    ).toMatchObject({ kind: 'vram_capacity', confidence: 'low', candidates: ['config_bug', 'not_memory'] });
  });
});

describe('what stands in front of a line', () => {
  it.each([
    ['[rank3]: ', 3],
    ['[default2]:', 2],
    ['[trainer1|0]:', 1],
    ['[1,5]<stderr>:', 5],
    ['(WorkerDict pid=4411, ip=10.1.0.7) ', undefined],
    ['2031-02-03 04:05:06.789 ', undefined],
    ['2031-02-03T04:05:06.789012345Z stderr F ', undefined],
    ['[2031-02-03 04:05:06,789] ', undefined],
    ['ERROR 02-03 04:05:06 engine.py:12] ', undefined],
    ['ERROR:root:', undefined],
    ['[2031-02-03 04:05:06,789][some.trainer][ERROR] ', undefined],
    ['2031-02-03 04:05:06,789 - some.trainer - ERROR - ', undefined],
    ['[80746] ', undefined],
    ['err| [rank6]: ', 6],
    ['  7%|▋         | 7/100 [00:03<00:40,  2.31it/s]', undefined],
    ['\u001b[1;31m', undefined],
    ['\u001b]0;a window title\u0007', undefined],
  ])('is taken off: %j', (prefix, rank) => {
    const failure = readText(`${prefix}${oom()}`);
    expect(failure).toMatchObject({ kind: 'vram_capacity', numbers: { totalBytes: Math.round(23.62 * GiB) } });
    expect(failure?.evidence[0]?.rank).toBe(rank);
    expect(failure?.evidence[0]?.text.startsWith('torch.OutOfMemoryError: ')).toBe(true);
  });

  it.each(['trainer-1  | ', '3: ', 'node07: '])('is trusted more once other lines have it: %j', (prefix) => {
    expect(readText(`${prefix}${oom()}`)?.confidence).toBe('low');
    expect(readText(`${prefix}starting\n${prefix}${oom()}`)?.confidence).toBe('high');
  });

  it('is a container runtime that wraps lines in JSON', () => {
    const wrap = (log: string, stream: string): string =>
      JSON.stringify({ log: `${log}\n`, stream, time: '2031-02-03' });
    expect(readText(wrap(oom(), 'stderr'))?.kind).toBe('vram_capacity');
    expect(readText(wrap(oom(), 'dataset'))?.kind).toBe('unknown');
  });
});
