import type { Signature } from './signature.ts';

const other = (
  id: string,
  place: Signature['place'],
  pattern: RegExp,
  hints: readonly string[],
  more: Partial<Signature> = {},
): Signature => ({ id, role: 'other', kind: 'not_memory', resource: 'none', place, pattern, hints, ...more });

/** Texts that look like memory, or stand where memory is suspected, and are something else. */
export const neverMemory: readonly Signature[] = [
  other('kernel-on-chip-resources', 'exception', /out of resource: \w+|^(?:\w+\.)*OutOfResources\b/, [
    'ut of resource',
    'OutOfResources',
  ]),
  other('device-assert', 'line', /device-side assert triggered|Assertion `[^`]{1,120}` failed/, [
    'device-side assert',
    'Assertion `',
  ]),
  other(
    'device-fault',
    'exception',
    /an illegal memory access was encountered|misaligned address|unspecified launch failure|unknown error\b.*CUDA|CUDA error: unknown error|an illegal instruction was encountered/,
    ['illegal', 'misaligned address', 'launch failure', 'unknown error'],
  ),
  other('device-hardware', 'exception', /uncorrectable ECC error|hardware stack error|CUDA_ERROR_ECC_UNCORRECTABLE/, [
    'ECC error',
    'ECC_UNCORRECTABLE',
    'hardware stack error',
  ]),
  other('device-build', 'exception', /no kernel image is available|invalid device function/, [
    'no kernel image',
    'invalid device function',
  ]),
  other('device-choice', 'exception', /invalid device ordinal/, ['invalid device ordinal']),
  other('driver-mismatch', 'line', /CUDA driver version is insufficient|Driver\/library version mismatch/, [
    'driver version is insufficient',
    'library version mismatch',
  ]),
  other('device-lost', 'line', /NVRM: Xid|GPU has fallen off the bus|Unable to determine the device handle for GPU/, [
    'NVRM: Xid',
    'fallen off the bus',
    'device handle for GPU',
  ]),
  other('device-name', 'exception', /invalid literal for int\(\) with base \d+: '(?:GPU|MIG)-/, [
    'invalid literal for int()',
  ]),
  other(
    'negative-allocation',
    'exception',
    /alloc_cpu\(\) seems to have been called with negative number/,
    ['negative number'],
    {
      kind: 'config_bug',
      resource: 'host_ram',
    },
  ),
  other('too-many-files', 'exception', /Too many open files|received 0 items of ancdata/, [
    'Too many open files',
    'items of ancdata',
  ]),
  other(
    'truncated-file',
    'exception',
    /PytorchStreamReader failed|unexpected EOF, expected \d+ more bytes|Ran out of input|HeaderTooLarge|MetadataIncompleteBuffer|InvalidHeaderDeserialization|invalid header or archive is corrupted/,
    [
      'PytorchStreamReader',
      'unexpected EOF',
      'Ran out of input',
      'HeaderTooLarge',
      'IncompleteBuffer',
      'InvalidHeader',
      'archive is corrupted',
    ],
  ),
  other(
    'remote-quota',
    'exception',
    /RESOURCE_EXHAUSTED(?!: Out of memory|: Attempting to (?:reserve|allocate)|:.{0,80}[Rr]an out of memory)|ResourceExhausted: 429|429 (?:Client Error|Too Many Requests)/,
    ['RESOURCE_EXHAUSTED', 'ResourceExhausted', '429 Client', '429 Too Many'],
  ),
  other('scheduler-end', 'line', /CANCELLED AT \S+ DUE TO (?:TIME LIMIT|PREEMPTION|NODE FAILURE)/, ['CANCELLED AT']),
  other(
    'collective-timeout',
    'line',
    /Watchdog caught collective operation timeout|collective operation timed out|WorkNCCL\(.*\) timed out/,
    ['Watchdog caught', 'timed out', 'operation timeout'],
    { confidence: 'medium' },
  ),
];

/** Lines that follow from something earlier and explain nothing themselves. */
export const echoes: readonly Signature[] = [
  {
    id: 'echo',
    role: 'echo',
    kind: 'unknown',
    resource: 'unknown',
    place: 'line',
    pattern:
      /^(?:[\w.]+\.)?(?:ChildFailedError|ProcessRaisedException|ProcessExitedException|CalledProcessError|SignalException(?!: Process \d+ got signal: (?:15|2|1)\b)|DistBackendError|DistNetworkError|SystemExit|BrokenPipeError|ConnectionResetError|EOFError: *$|WorkerCrashedError|ActorDiedError|RayActorError|RayTaskError)\b|Connection closed by (?:remote )?peer|Some NCCL operations have failed or timed out|^terminate called without an active exception|ncclRemoteError|unhandled (?:cuda|system) error/,
    hints: [
      'ChildFailedError',
      'ProcessRaisedException',
      'ProcessExitedException',
      'CalledProcessError',
      'SignalException',
      'DistBackendError',
      'DistNetworkError',
      'SystemExit',
      'BrokenPipeError',
      'ConnectionResetError',
      'EOFError',
      'WorkerCrashedError',
      'ActorDiedError',
      'RayActorError',
      'RayTaskError',
      'Connection closed by',
      'NCCL operations',
      'terminate called without',
      'ncclRemoteError',
      'unhandled cuda error',
      'unhandled system error',
    ],
  },
];

const crash = (id: string, pattern: RegExp, hints: readonly string[], skim?: readonly string[]): Signature => ({
  id,
  role: 'crash',
  kind: 'not_memory',
  resource: 'none',
  place: 'exception',
  pattern,
  hints,
  ...(skim ? { skim } : {}),
  confidence: 'medium',
});

/** Any other exception that ended a traceback; those with an answer of their own stand first. */
export const crashes: readonly Signature[] = [
  crash(
    'missing-package',
    /^(?:ModuleNotFoundError|ImportError|PackageNotFoundError|importlib\S*PackageNotFoundError)\b/,
    ['ModuleNotFoundError', 'ImportError', 'PackageNotFoundError'],
  ),
  crash(
    'gated-model',
    /GatedRepoError|access(?:ing)? (?:to )?(?:a |the )?gated repo|is a gated (?:repo|model)|Cannot access gated repo|(?:401|403) Client Error.{0,120}huggingface/,
    ['GatedRepoError', 'gated', 'Client Error'],
    ['GatedRepoError', 'gated repo', 'gated model', 'Client Error'],
  ),
  crash(
    'not-a-number',
    /[Ll]oss is (?:nan|NaN|inf)|contains either `?inf`?, `?nan`?|Minimum loss scale reached|[Ll]oss scale (?:already )?at minimum|(?:NaN|Inf) (?:or Inf )?(?:found|detected)|[Dd]etected (?:nan|NaN)|nonfinite|non-finite/,
    [
      'oss is nan',
      'oss is NaN',
      'oss is inf',
      '`inf`, `nan`',
      'either inf',
      'oss scale',
      'NaN found',
      'NaN detected',
      'NaN or Inf',
      'Inf found',
      'Inf detected',
      'etected nan',
      'etected NaN',
      'nonfinite',
      'non-finite',
    ],
  ),
  crash('ended-from-outside', /^(?:[\w.]+\.)?SignalException: Process \d+ got signal: (?:15|2|1)\b/, ['got signal: ']),
  {
    id: 'python-exception',
    role: 'crash',
    kind: 'not_memory',
    resource: 'none',
    place: 'exception',
    pattern:
      /^(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*(?:Error|Exception|KeyboardInterrupt)(?:\([\w., ]*\))?(?::|$)|^KeyboardInterrupt$/,
    hints: ['Error', 'Exception', 'KeyboardInterrupt'],
    // In the middle of a huge log an exception matters by its traceback; at the end every line is read.
    skim: ['Traceback', 'KeyboardInterrupt'],
    confidence: 'medium',
  },
  {
    id: 'segmentation-fault',
    role: 'crash',
    kind: 'not_memory',
    resource: 'none',
    place: 'line',
    pattern:
      /^Fatal Python error: (?!MemoryError)|^Segmentation fault\b|exitcode\s*: -11\b|return code = -11\b|\(exitcode: -11\)|exitcode\s*: -6\b|return code = -6\b|\(exitcode: -6\)|0x[Cc]0000005\b/,
    hints: ['Fatal Python error', 'Segmentation fault', 'exitcode', 'return code', '0000005'],
    confidence: 'medium',
  },
];
