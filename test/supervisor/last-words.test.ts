import { describe, expect, it } from 'vitest';
import { classify, type Evidence } from '../../src/diagnosis/index.ts';
import { SIGNATURES } from '../../src/diagnosis/signatures/index.ts';
import { bar, ELSEWHERE, GOES_ON, MEMORY, NEVER, QUOTED, ROWS, UNDECIDED } from '../diagnosis/rows.ts';
import { newText } from '../diagnosis/texts.ts';
import { lastWords } from './rig.ts';

const seen = new Set<string>();
/** A program prints this, and ends with `code`. */
async function die(text: string, code = 1): Promise<Evidence> {
  const evidence = await lastWords(text, code).evidence();
  for (const { signature } of evidence.lines) if (signature !== undefined) seen.add(signature);
  expect(evidence).toMatchObject({ exitCode: code, signal: undefined, stoppedBecause: undefined });
  return evidence;
}

/** What `rows.ts` has no line for. */
const REST: readonly (readonly [text: string, kind: string])[] = [
  ['ValueError: not enough values to unpack (expected 2, got 1)', 'not_memory'],
  ['torch.distributed.elastic.SignalException: Process 8101 got signal: 15', 'not_memory'],
  ['torch.distributed.DistBackendError: NCCL communicator was aborted on rank 3.', 'unknown'],
  ['Fatal Python error: Segmentation fault', 'not_memory'],
  ['RuntimeError: No executable batch size found, reached zero.', 'config_bug'],
  ['RuntimeError: alloc_cpu() seems to have been called with negative number: 18446744071562067968', 'config_bug'],
  ['torch.OutOfMemoryError', 'vram_capacity'],
  [
    'UserWarning: Failed to clone() tensor with name lm_head on rank 2. Error: CUDA out of memory.',
    'vram_checkpoint_save_spike',
  ],
  ['RuntimeError: Too many open files. Communication with the workers is no longer possible.', 'not_memory'],
  ['RuntimeError: Native API failed. (UR_RESULT_ERROR_OUT_OF_RESOURCES)', 'unknown'],
  ['RuntimeError: CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`', 'vram_capacity'],
  [
    'RuntimeError: cuDNN error: CUDNN_STATUS_NOT_SUPPORTED. This error may appear for a non-contiguous input.',
    'unknown',
  ],
  [
    'ResourceExhaustedError: Out of memory error on GPU 2. Cannot allocate 731.000000MB memory on GPU 2',
    'vram_capacity',
  ],
  ['pyarrow.lib.ArrowMemoryError: malloc of size 17179869184 failed', 'host_ram'],
  ["terminate called after throwing an instance of 'std::bad_alloc'", 'host_ram'],
  ['bash: fork: retry: Cannot allocate memory', 'host_ram'],
  ['memory allocation of 4294967296 bytes failed', 'host_ram'],
  ['earlyoom[612]: sending SIGTERM to process 8143 uid 1000 "python3": badness 812, VmRSS 58214 MiB', 'host_ram'],
  ['torch.distributed.elastic.multiprocessing.api: failed (exitcode: -9) local_rank: 1 (pid: 8144)', 'host_ram'],
  ['Error: Process completed with exit code 137', 'unknown'],
  ['worker ended: signal=SIGKILL', 'unknown'],
  ['RuntimeError: DataLoader worker (pid 733) is killed by signal: Killed. ', 'dataloader_ram'],
  ['RuntimeError: DataLoader worker (pid(s) 733, 734) exited unexpectedly', 'dataloader_ram'],
  ['RuntimeError: DataLoader worker (pid 733) is killed by signal: Bus error. ', 'shm'],
  ["OSError: [Errno 28] No space left on device: '/dev/shm/torch_733_0'", 'shm'],
  ['torch.distributed.elastic.multiprocessing.api: failed (exitcode: -7) local_rank: 1 (pid: 8144)', 'shm'],
  ['ray.exceptions.WorkerCrashedError: The worker died unexpectedly while executing this task.', 'unknown'],
];

describe('a program that dies with these last words is told by them', () => {
  it.each([...Object.values(ROWS).flat(), ...ELSEWHERE])('%s', async (text, kind, resource, lookAlike) => {
    expect(classify(await die(text))).toMatchObject({ kind, resource });
    expect(MEMORY).not.toContain(classify(await die(lookAlike))?.resource);
  });
  it.each(NEVER)('no memory: %s', async (text) => {
    expect(classify(await die(text))).toMatchObject({ kind: 'not_memory', resource: 'none' });
  });
  it.each(UNDECIDED)('killed, and nobody says by whom: %s', async (text) => {
    expect(classify(await die(text))).toMatchObject({ kind: 'unknown' });
  });
  it.each(REST)('%s', async (text, kind) => {
    expect(classify(await die(text))).toMatchObject({ kind });
  });
});

describe('a program that goes on after these words is left alone', () => {
  it.each([...GOES_ON, ...QUOTED])('%s', async (text) => {
    const evidence = await die([bar(3), bar(4), text, bar(5), bar(6), bar(7)].join('\n'), 0);
    expect(classify(evidence)).toBeUndefined();
  });
  it('also where it is an exception that was caught', async () => {
    const caught = `torch.OutOfMemoryError: ${newText()}`;
    expect(classify(await die([bar(3), caught, bar(4), bar(5), bar(6)].join('\n'), 0))).toBeUndefined();
  });
});

it('every signature of the catalogue was among these words', () => {
  expect(SIGNATURES.map(({ id }) => id).filter((id) => !seen.has(id))).toEqual([]);
});
