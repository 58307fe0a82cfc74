import { type Diagnostic, error, warning } from '../../core/index.ts';
import { formatOrigin, type Origin } from '../../spec/index.ts';
import type { Given, Lookup } from '../accelerate-config/index.ts';
import { ACCELERATE_DEFAULT } from '../accelerate-config/index.ts';
import type { Position, Processes } from '../dialect.ts';

/** How accelerate starts the script. */
export type Paradigm = 'deepspeed' | 'fsdp' | 'megatron' | 'multi' | 'tpu' | 'simple' | 'sagemaker';

export interface Paradigms {
  readonly kind: Paradigm;
  /** Where it was chosen. */
  readonly origin: Origin;
}

const FLAGS: readonly (readonly [option: string, kind: Paradigm])[] = [
  ['use_deepspeed', 'deepspeed'],
  ['use_fsdp', 'fsdp'],
  ['use_megatron_lm', 'megatron'],
  ['multi_gpu', 'multi'],
  ['tpu', 'tpu'],
];

/** Any of these flags takes the choice away from the file. Source: accelerate/commands/launch.py `launch_command`. */
export function readParadigm(lookup: Lookup, hasFile: boolean, position: Position): Paradigms {
  const cpu = [lookup('cpu'), lookup('use_cpu')].find((given) => given?.value === true);
  if (cpu) return { kind: 'simple', origin: cpu.origin };
  for (const [option, kind] of FLAGS) {
    const given = lookup(option);
    if (given && given.value !== false) return { kind, origin: given.origin };
  }
  if (hasFile) {
    const { value, origin } = lookup('distributed_type')!;
    const sagemaker = lookup('compute_environment')?.value === 'AMAZON_SAGEMAKER';
    return { kind: sagemaker ? 'sagemaker' : kindOf(String(value)), origin };
  }
  const asked = lookup('num_processes');
  const count = asked ? Number(asked.value) : (position.visibleGpus ?? Number.NaN);
  const origin = asked?.origin ?? visibleOrigin(position);
  // Several GPUs switch multi-GPU on by themselves; one process is started plainly, without ranks.
  const several = (count > 1 || Number.isNaN(count)) && (position.visibleGpus ?? 2) > 1;
  return { kind: several ? 'multi' : 'simple', origin };
}

const visibleOrigin = ({ visibleGpus }: Position): Origin => ({
  kind: 'derived',
  from:
    visibleGpus === undefined
      ? 'the visible GPUs, unknown here'
      : visibleGpus === 0
        ? 'no visible GPU'
        : `${visibleGpus} visible GPU${visibleGpus === 1 ? '' : 's'}`,
});

function kindOf(distributedType: string): Paradigm {
  if (distributedType === 'DEEPSPEED') return 'deepspeed';
  if (distributedType === 'FSDP') return 'fsdp';
  if (distributedType === 'MEGATRON_LM') return 'megatron';
  if (distributedType === 'XLA' || distributedType === 'TPU') return 'tpu';
  return distributedType.startsWith('MULTI_') && distributedType !== 'MULTI_CPU' ? 'multi' : 'simple';
}

/**
 * Processes per machine: `num_processes` counts those of all machines together. The launcher counts GPUs itself before it
 * narrows them to `gpu_ids` for the ranks.
 */
export function readProcesses(
  lookup: Lookup,
  { kind }: Paradigms,
  file: string | undefined,
  at: { readonly launcher: Position; readonly ranks: Position },
): { readonly value: Processes; readonly diagnostics: readonly Diagnostic[] } {
  const diagnostics: Diagnostic[] = [];
  const given = lookup('num_processes');
  if (kind === 'sagemaker') {
    return { value: { ...UNKNOWN, origin: ACCELERATE_DEFAULT }, diagnostics };
  }
  const total = given ? countOf(given, 'num_processes', diagnostics) : defaultTotal(lookup, file, at.launcher);
  if (total === 'missing') {
    diagnostics.push(
      error('no-num-processes', `${file} names no num_processes, and accelerate stops without it`, {
        location: file!,
        help: 'accelerate launch --num_processes 2',
      }),
    );
    return { value: { ...UNKNOWN, origin: ACCELERATE_DEFAULT }, diagnostics };
  }
  const origin: Origin = given?.origin ?? (file ? ACCELERATE_DEFAULT : visibleOrigin(at.launcher));
  if (kind === 'simple') {
    if (total !== null && total > 1) diagnostics.push(onlyOne(total, origin));
    return { value: { nodes: 1, perNode: 1, distributed: false, origin }, diagnostics };
  }
  const machines = lookup('num_machines');
  const nodes = machines ? countOf(machines, 'num_machines', diagnostics) : 1;
  if (total === null || nodes === null)
    return { value: { nodes, perNode: null, distributed: true, origin }, diagnostics };
  if (total % nodes !== 0) diagnostics.push(uneven(total, nodes, origin));
  const perNode = Math.max(1, Math.floor(total / nodes));
  diagnostics.push(...tooFewGpus(perNode, nodes, origin, at.ranks));
  return { value: { nodes, perNode, distributed: true, origin }, diagnostics };
}

const UNKNOWN = { nodes: null, perNode: null, distributed: true } as const;

/** Without a file every visible GPU gets a process; with one that says nothing only distributed_type NO has a default. */
function defaultTotal(lookup: Lookup, file: string | undefined, { visibleGpus }: Position): number | null | 'missing' {
  if (file === undefined) return visibleGpus === undefined ? null : Math.max(1, visibleGpus);
  // Without quotes NO is false to YAML, which accelerate does not take for 'NO' here.
  return lookup('distributed_type')?.value === 'NO' ? 1 : 'missing';
}

function countOf({ value, origin }: Given, name: string, diagnostics: Diagnostic[]): number | null {
  const count = typeof value === 'number' || /^\d+$/.test(String(value)) ? Number(value) : Number.NaN;
  if (Number.isInteger(count) && count > 0) return count;
  const help = `write the number: --${name} 2`;
  diagnostics.push(
    warning('not-a-number', `${name} ${value ?? ''} is no number that can be known here`.replace('  ', ' '), {
      location: formatOrigin(origin),
      help,
    }),
  );
  return null;
}

const onlyOne = (total: number, origin: Origin): Diagnostic =>
  warning('one-process', `accelerate starts one process here, whatever num_processes ${total} says`, {
    location: formatOrigin(origin),
    help: 'accelerate launch --multi_gpu starts one for each',
  });

const uneven = (total: number, nodes: number, origin: Origin): Diagnostic =>
  warning('uneven-processes', `${total} processes do not divide into ${nodes} machines; accelerate rounds down`, {
    location: formatOrigin(origin),
    help: `--num_processes ${Math.max(nodes, total - (total % nodes))}`,
  });

function tooFewGpus(perNode: number, nodes: number, origin: Origin, { visibleGpus }: Position): Diagnostic[] {
  if (!visibleGpus || perNode <= visibleGpus) return [];
  const message = `${perNode} processes are to share ${visibleGpus} visible GPU${visibleGpus === 1 ? '' : 's'}`;
  return [
    warning('too-few-gpus', message, {
      location: formatOrigin(origin),
      help: `--num_processes ${visibleGpus * nodes}`,
    }),
  ];
}
