import { formatBytes } from '../core/index.ts';
import type { Failure, FailureKind, FailureNumbers } from '../diagnosis/index.ts';

/** What happened, one clause; `PHASE` stands where the phase is named. */
const TITLES: Readonly<Record<FailureKind, string>> = {
  vram_capacity: 'GPU memory ran out PHASE',
  vram_fragmentation: 'GPU memory ran out PHASE with free memory in pieces',
  vram_other_process: 'GPU memory ran out PHASE because other programs hold much of it',
  vram_leak_growth: 'GPU memory ran out PHASE after growing step by step',
  vram_eval_spike: 'GPU memory ran out in evaluation',
  vram_checkpoint_save_spike: 'GPU memory ran out while a checkpoint was saved',
  vram_load_spike: 'GPU memory ran out while the model was loaded',
  nccl_hang_after_oom: 'one rank ran out of GPU memory PHASE, the others waited for it',
  host_ram: 'host RAM ran out',
  dataloader_ram: 'a DataLoader worker was ended, most likely for want of host RAM',
  cgroup: 'the memory limit of this container or job ended the run',
  swap_thrash: 'host RAM ran out and the machine was swapping',
  shm: 'shared memory (/dev/shm) ran out',
  disk: 'the disk is full',
  not_memory: 'the run failed, and not for want of memory',
  config_bug: 'the run failed by a setting that cannot work',
  unknown: 'the run failed, and its output does not say why',
};

const PHASES: Readonly<Record<Failure['phase'], string>> = {
  load: 'while the model was loaded',
  forward: 'in the forward pass',
  backward: 'in the backward pass',
  optimizer: 'in the optimizer step',
  eval: 'in evaluation',
  save: 'while a checkpoint was saved',
  resume: 'while a checkpoint was loaded',
  unknown: '',
};

/** `GPU memory ran out in the backward pass`. */
export const failureTitle = ({ kind, phase }: Pick<Failure, 'kind' | 'phase'>): string =>
  TITLES[kind].replace(/ ?PHASE/, PHASES[phase] === '' ? '' : ` ${PHASES[phase]}`);

/** `vram_capacity, backward`: the form for tables. */
export const failureShort = ({ kind, phase }: Pick<Failure, 'kind' | 'phase'>): string =>
  phase === 'unknown' || kind.includes(phase) ? kind : `${kind}, ${phase}`;

const NUMBERS: readonly (readonly [keyof FailureNumbers, string])[] = [
  ['triedBytes', 'asked for'],
  ['allocatedBytes', 'allocated'],
  ['reservedUnallocatedBytes', 'reserved but unallocated'],
  ['freeBytes', 'free'],
  ['othersBytes', 'held by other programs'],
  ['totalBytes', 'on the card'],
];

/** `2.0 GiB asked for, 21.1 GiB allocated, 23.6 GiB on the card`; empty without numbers. */
export const failureNumbers = ({ numbers }: Pick<Failure, 'numbers'>): string =>
  NUMBERS.flatMap(([name, text]) => {
    const bytes = numbers[name];
    return bytes === undefined ? [] : [`${formatBytes(bytes)} ${text}`];
  }).join(', ');
