import { formatBytes } from '../core/index.ts';
import type { FailurePhase } from '../diagnosis/index.ts';

/** A setting that moves host RAM. */
export interface HostRamLever {
  readonly lever: 'workers' | 'offload' | 'ranks' | 'pin-memory';
  /** As they were in the run. */
  readonly workers: number;
  readonly ranks: number;
  /** undefined: it cannot be estimated. */
  readonly savesBytes: number | undefined;
}

/** What is known of host RAM once it ran out, bytes. */
export interface HostRamOut {
  readonly phase: FailurePhase;
  /** Highest resident set of the run's processes; 0: not sampled. */
  readonly seenBytes: number;
  /** Limit of the container or job, or RAM of the machine. */
  readonly limitBytes: number | undefined;
  /** Free before the run began. */
  readonly availableBytes: number | undefined;
  /** What decided `availableBytes`. */
  readonly limitedBy: string | undefined;
  /** What saves most comes first. */
  readonly levers: readonly HostRamLever[];
}

function leverText({ lever, workers, ranks }: HostRamLever): string {
  switch (lever) {
    case 'workers':
      return `fewer DataLoader workers (dataloader_num_workers is ${workers})`;
    case 'offload':
      return 'no offload to host RAM, where the GPU has the room';
    case 'ranks':
      return `fewer processes on this machine (there were ${ranks}; each is a Python with CUDA of its own)`;
    case 'pin-memory':
      return 'dataloader_pin_memory: false';
  }
}

const IN_PHASE: Partial<Record<FailurePhase, readonly string[]>> = {
  load: ['loading the model in the dtype of its checkpoint (dtype: auto), so that nothing is converted'],
  save: ['a checkpoint that is saved in shards, or the adapter alone'],
};

/** `host RAM ran out: 11.8 GiB seen …` and what to try, in the order of what it saves. */
export function hostRamLines(out: HostRamOut): string[] {
  const { phase, seenBytes, limitBytes, availableBytes, limitedBy, levers } = out;
  const facts = [
    ...(seenBytes > 0 ? [`${formatBytes(seenBytes)} seen in all processes of the run`] : []),
    ...(availableBytes === undefined
      ? []
      : [`${formatBytes(availableBytes)} were available before${limitedBy ? ` (${limitedBy})` : ''}`]),
    ...(limitBytes === undefined ? [] : [`${formatBytes(limitBytes)} is the most there can be`]),
  ];
  const told = levers.map((lever) => {
    const saves = lever.savesBytes === undefined ? '' : `: about ${formatBytes(lever.savesBytes)} less`;
    return `${leverText(lever)}${saves}`;
  });
  const ways = [
    ...told,
    ...(IN_PHASE[phase] ?? []),
    'rows that stay memory-mapped, and fewer processes preparing them (dataset_num_proc)',
    'a machine, container or job with more RAM',
  ];
  return [
    `host RAM ran out${facts.length > 0 ? `: ${facts.join(', ')}` : ''}`,
    ...ways.map((way) => `  would help: ${way}`),
  ];
}
