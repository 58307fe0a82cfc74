import { assertNever, formatBytes, MiB } from '../core/index.ts';
import type { EvidenceLine } from '../diagnosis/index.ts';
import type { MemoryEstimate } from '../memory/index.ts';
import { groupByLever, renderChanges } from './change-text.ts';
import { formatDuration } from './duration.ts';
import { failureNumbers, failureTitle } from './failure-text.ts';
import { hostRamLines } from './host-ram-text.ts';
import { maskSecrets } from './mask-secrets.ts';
import type { AttemptEnd, RunEvent } from './run-event.ts';
import { shellWords } from './shell-words.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { columnsOf, wrap } from './wrap.ts';

const PREFIX = 'snug: ';

/** Every line of snug's talk carries its name: the trainer's own output stands between. */
export function prefixed(lines: readonly string[], options: TextOptions): string {
  const room = { ...options, width: options.width - PREFIX.length };
  const text = lines.map((line) => wrap(line, room.width, /^ */.exec(line)![0].length + 2)).join('\n');
  return plainSigns(options, maskSecrets(text))
    .split('\n')
    .map((line) => `${paint(options, 'magenta', PREFIX.trimEnd())} ${line}`)
    .join('\n');
}

/** `exit code 1`, `ended by SIGKILL`. */
export const endText = ({ exitCode, signal }: AttemptEnd): string =>
  signal ? `ended by ${signal}` : exitCode === undefined ? 'not started' : `exit code ${exitCode}`;

const lineText = ({ line, text, rank, stream }: EvidenceLine): string =>
  `${stream}, line ${line}${rank === undefined ? '' : `, rank ${rank}`}: ${text.trim()}`;

const predictedText = (predicted: MemoryEstimate | undefined): string =>
  predicted ? `, predicted ${formatBytes(predicted.vram.devicePeakBytes)} a GPU` : '';

/** Two lines at most: the trainer's own output stands right above. */
function clipped(text: string, options: TextOptions): string[] {
  const width = options.width - PREFIX.length;
  const hang = /^ */.exec(text)![0].length + 2;
  const [first, second, ...rest] = wrap(text, width, hang).split('\n');
  if (second === undefined) return [first!];
  if (rest.length === 0) return [first!, second];
  const words = second.trim().split(' ');
  while (words.length > 1 && hang + columnsOf(words.join(' ')) + 2 > width) words.pop();
  return [first!, `${' '.repeat(hang)}${words.join(' ')} …`];
}

/** What a shell in front of a trainer needs anyway is not worth a word. */
const WORTH_SAYING = 64 * MiB;

type AttemptEnded = Extract<RunEvent, { kind: 'attempt-ended' }>;

/** What was seen beside what was predicted; a part that was not sampled is left out. */
function peaksSeen(event: AttemptEnded): string[] {
  const { predicted, peakVramBytes, peakRamBytes } = event;
  const beside = (bytes: number | undefined): string =>
    bytes === undefined ? '' : `, predicted ${formatBytes(bytes)}`;
  const ram = peakRamBytes >= WORTH_SAYING || (peakRamBytes > 0 && predicted !== undefined);
  const parts = [
    ...(peakVramBytes === undefined
      ? []
      : [`GPU peak seen ${formatBytes(peakVramBytes)}${beside(predicted?.vram.devicePeakBytes)}`]),
    ...(ram ? [`host RAM peak seen ${formatBytes(peakRamBytes)}${beside(predicted?.ram.peakBytes)}`] : []),
  ];
  return parts.length > 0 ? [`  ${parts.join('; ')}`] : [];
}

/** Who may have sent a signal 9 that nothing explains, and the memory it is to be judged by. */
function killCandidates({ end, failure, hostRamBytes, cgroupLimitBytes }: AttemptEnded): string[] {
  const killed = end.signal === 'SIGKILL' || end.exitCode === 137;
  if (!killed || failure?.kind !== 'unknown') return [];
  const known = [
    ...(hostRamBytes === undefined ? [] : [`the machine has ${formatBytes(hostRamBytes)} of RAM`]),
    ...(cgroupLimitBytes === undefined ? [] : [`the limit around the run is ${formatBytes(cgroupLimitBytes)}`]),
  ];
  return [
    '  it may be that host RAM ran out, that a memory limit (cgroup, container, job) was reached, or that somebody sent kill -9',
    ...(known.length > 0 ? [`  ${known.join(', ')}`] : []),
  ];
}

function attemptEnded(event: AttemptEnded, options: TextOptions): string[] {
  const { attempt, end, durationMs, failure, forwardedSignal } = event;
  if (end.exitCode === undefined && end.signal === undefined) return [`attempt ${attempt} could not be started`];
  const took = `after ${formatDuration(durationMs)}, ${endText(end)}`;
  if (!failure) return [`attempt ${attempt} finished ${took}`, ...peaksSeen(event)];
  if (forwardedSignal !== undefined && (failure.kind === 'not_memory' || failure.kind === 'unknown')) {
    return [`attempt ${attempt} stopped by ${forwardedSignal} ${took}`, ...peaksSeen(event)];
  }
  const numbers = failureNumbers(failure);
  const [first] = failure.evidence;
  return [
    `attempt ${attempt} failed ${took}: ${failureTitle(failure)}`,
    ...(numbers ? [`  ${numbers}`] : []),
    ...(first ? clipped(`  ${lineText(first)}`, options) : []),
    ...killCandidates(event),
    ...peaksSeen(event),
  ];
}

/** The first request waits for the trainer, the second for the tree, the third for nothing. */
function signalForwarded({ signal, requests }: Extract<RunEvent, { kind: 'signal-forwarded' }>): string {
  if (requests > 2) return `${signal} once more: killing every process of the run`;
  if (requests === 2) return `${signal} again: stopping every process of the run; a third time kills them at once`;
  const passed = `passed ${signal} on to the run; it is not started again after this`;
  return requests === 1 ? `${passed}; a second ${signal} stops every process of it` : passed;
}

function stalled({ quietMs, busyCores, processes, stops }: Extract<RunEvent, { kind: 'stalled' }>): string[] {
  const cores = busyCores === undefined ? '' : busyCores < 0.05 ? 'idle' : `busy on ${busyCores.toFixed(1)} cores`;
  const state = cores && processes !== undefined ? `; its ${processes} processes are ${cores}` : '';
  return [
    `no output for ${formatDuration(quietMs)}${state}`,
    stops ? '  ending it, as --stall-action stop asks' : '  it is left alone; --stall-action stop would end it',
  ];
}

function memoryGrows({ memory, growth }: Extract<RunEvent, { kind: 'memory-grows' }>): string[] {
  const { bytesPerStep, fromStep, fullAtStep } = growth;
  const [what, full] = memory === 'vram' ? ['GPU memory', 'the card is full'] : ['host RAM', 'it is used up'];
  const when = fullAtStep === undefined ? '' : `: at this pace ${full} at about step ${fullAtStep}`;
  return [
    `${what} has grown by ${formatBytes(bytesPerStep)} a step since step ${fromStep}${when}`,
    '  a smaller batch only puts that off: something is kept from step to step (losses without .item(), a list, a cache)',
  ];
}

function slowedDown({ usualStepMs, stepMs, because }: Extract<RunEvent, { kind: 'slowed-down' }>): string[] {
  const slower = `a step takes ${formatDuration(stepMs)}, ${(stepMs / usualStepMs).toFixed(0)} times as long as before`;
  return because === 'vram'
    ? [
        `${slower}, and the card is full: its driver moves memory to the host, or the allocator frees and asks again`,
        '  it is left alone; --headroom 0.15 leaves the card more room at the next start',
      ]
    : [
        `${slower}, and much of the run lies in swap: host RAM is too small for it`,
        '  it is left alone; fewer DataLoader workers, no offload or more RAM would help',
      ];
}

function replanned(event: Extract<RunEvent, { kind: 'replanned' }>, options: TextOptions): string[] {
  const { because, changes, predicted, calibratedBytes, distributed } = event;
  const scaled =
    predicted && calibratedBytes && calibratedBytes > predicted.vram.devicePeakBytes * 1.005
      ? `, ${formatBytes(calibratedBytes)} by what was seen`
      : '';
  return [
    `${because}; trying smaller${predictedText(predicted)}${scaled}`,
    // Wrapped where the prefix is put on.
    ...renderChanges(
      changes,
      { distributed, priced: predicted !== undefined },
      { ...options, width: Number.POSITIVE_INFINITY },
    ),
  ];
}

function eventLines(event: RunEvent, options: TextOptions): readonly string[] {
  switch (event.kind) {
    case 'attempt-started': {
      const levers = groupByLever(event.changes).length;
      const changed = levers > 0 ? ` with ${levers} change${levers > 1 ? 's' : ''}` : ' as it came';
      return [
        `attempt ${event.attempt} starts${changed}${predictedText(event.predicted)}`,
        `  ${shellWords(maskSecrets(event.argv))}`,
      ];
    }
    case 'fatal-line':
      return clipped(`out of memory seen on ${lineText(event.line)}`, options);
    case 'stopping-tree':
      return [`stopping every process of the run (${event.because}), by force after ${formatDuration(event.graceMs)}`];
    case 'signal-forwarded':
      return [signalForwarded(event)];
    case 'stalled':
      return stalled(event);
    case 'memory-grows':
      return memoryGrows(event);
    case 'slowed-down':
      return slowedDown(event);
    case 'same-again':
      return [`${event.because}; going on with the same settings in a fresh process`];
    case 'gpu-memory-waiting':
      return [
        `waiting up to ${formatDuration(event.timeoutMs)} for the GPU to give back ${formatBytes(event.heldBytes)}`,
      ];
    case 'gpu-memory-freed':
      return [`the GPU is free again after ${formatDuration(event.waitedMs)}`];
    case 'gpu-memory-stuck':
      return [
        `${formatBytes(event.heldBytes)} of GPU memory are still held ${formatDuration(event.waitedMs)} after the run ended`,
        '  nvidia-smi lists who holds them; the settings are not shrunk to fit around them',
      ];
    case 'attempt-ended':
      return attemptEnded(event, options);
    case 'replanned':
      return replanned(event, options);
    case 'continuing':
      return [
        `going on with the run in ${event.runFolder}, after ${event.attempts} attempt${event.attempts === 1 ? '' : 's'}`,
      ];
    case 'waiting-for-watcher':
      return [`process ${event.pid} is still ending that run's trainer; waiting for it`];
    case 'checkpoint-skipped':
      return [`${event.checkpoint} is passed over: ${event.reason}`];
    case 'made-no-step':
      return [`it went on from ${event.checkpoint} and ended with exit code 0 without a step: that is no success`];
    case 'batch-search-off':
      return ['auto_find_batch_size is turned off: it would change the global batch, and snug retries by itself'];
    case 'checkpoint-batch':
      return [
        `${event.checkpoint} carries a batch of ${event.carries}, which this trainer would take over the flag`,
        `  it resumes from a stand-in that links to its files and says ${event.batch}`,
      ];
    case 'resuming':
      return [`resuming ${event.step === undefined ? '' : `after step ${event.step} `}from ${event.checkpoint}`];
    case 'starting-over':
      return [`starting over${event.outputDir ? ` into ${event.outputDir}` : ''}: ${event.reason}`];
    case 'given-up':
      return [`giving up: ${event.reason}`, ...event.wouldHelp.map((text) => `  would help: ${text}`)];
    case 'host-ram-out':
      return hostRamLines(event);
    case 'finished': {
      const times = event.attempts === 1 ? 'the first attempt' : `attempt ${event.attempts}`;
      return [`finished with ${times} after ${formatDuration(event.durationMs)}`];
    }
    default:
      return assertNever(event);
  }
}

/** One line or a short block on what just happened, every line prefixed `snug:`. No line break at the end. */
export const renderRunEvent = (event: RunEvent, options: TextOptions): string =>
  prefixed(eventLines(event, options), options);
