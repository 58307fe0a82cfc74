import type { FailureKind, Resource } from '../failure.ts';
import type { Signature } from './signature.ts';

const make =
  (kind: FailureKind, resource: Resource) =>
  (
    id: string,
    place: Signature['place'],
    pattern: RegExp,
    hints: readonly string[],
    more: Partial<Signature> = {},
  ) => ({
    id,
    role: 'cause' as const,
    kind,
    resource,
    place,
    pattern,
    hints,
    ...more,
  });
const shm = make('shm', 'shm');
const disk = make('disk', 'disk');

/** /dev/shm, through which data-loader workers and NCCL hand over tensors. Docker gives 64 MiB unless told otherwise. */
export const sharedMemory: readonly Signature[] = [
  shm(
    'shm-bus-error',
    'line',
    /[Uu]nexpected (?:bus|BUS) error encountered in .{0,20}worker|insufficient shared memory \(shm\)/,
    ['us error encountered', 'US error encountered', 'insufficient shared memory'],
  ),
  shm('shm-dataloader-bus-error', 'exception', /is killed by signal: Bus error/, ['signal: Bus error']),
  shm(
    'shm-torch-file',
    'exception',
    /unable to (?:allocate shared memory\(shm\) for file|write to file|mmap \d+ bytes from file|resize file) <\/torch_/,
    ['</torch_'],
  ),
  shm(
    'shm-no-space',
    'line',
    /(?:\/dev\/shm\/|\/torch_\d)\S*.{0,120}No space left on device|No space left on device.{0,120}(?:\/dev\/shm\b|<\/torch_)/,
    ['No space left'],
  ),
  shm('shm-nccl-segment', 'line', /Error while creating shared memory segment \/dev\/shm\//, [
    'creating shared memory segment',
  ]),
  shm(
    'shm-rank-bus-error',
    'line',
    /failed \(exitcode: -7\)|^\s*exitcode\s*: -7\b|exits with return code = -7\b|Signal 7 \(SIGBUS\) received by PID|^Bus error\b/,
    ['exitcode', 'return code', 'SIGBUS', 'Bus error'],
    {
      role: 'possible',
      confidence: 'medium',
      candidates: ['not_memory'],
      skim: ['exitcode', 'return code', '(SIGBUS)', 'Bus error'],
    },
  ),
];

/** The volume a run writes to. The errno is often missing from PyTorch's own text. */
export const diskSpace: readonly Signature[] = [
  disk('disk-full', 'exception', /\[Errno 28\]|No space left on device|kind: StorageFull|\(os error 28\)/, [
    'Errno 28]',
    'No space left',
    'StorageFull',
    'os error 28',
  ]),
  disk('disk-quota', 'exception', /\[Errno 122\]|Disk quota exceeded/, ['Errno 122]', 'Disk quota exceeded']),
  disk(
    'disk-torch-writer',
    'exception',
    /PytorchStreamWriter failed writing|unexpected pos \d+ vs \d+/,
    ['PytorchStreamWriter failed', 'unexpected pos'],
    { confidence: 'medium', candidates: ['not_memory'] },
  ),
];
