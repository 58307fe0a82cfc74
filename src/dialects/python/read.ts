import { type Diagnostic, note, ok, type Result } from '../../core/index.ts';
import type { Claim, Position, Processes, Reading } from '../dialect.ts';
import { pythonInvocation } from './invocation.ts';

/** Reads `python train.py`: one process, unless variables say that it is one of several that somebody started. */
export function readPython(claim: Claim, position: Position): Result<Reading> {
  const invocation = pythonInvocation(position);
  const target = invocation?.target;
  const interpreter = invocation?.interpreter;
  const processes = processesOf(position);
  return ok({
    spec: {},
    detail: undefined,
    processes: processes.value,
    diagnostics: [...processes.diagnostics, ...(target ? [] : [unreadCode(position, claim.from)])],
    ...(target ? { handOn: { kind: 'target', target } } : {}),
    ...(interpreter === undefined ? {} : { python: position.argv[interpreter]! }),
  });
}

const unreadCode = ({ argv }: Position, index: number): Diagnostic =>
  note('unread-command', `${argv[index]} is given no script or module whose settings could be read`, {
    location: `argv[${index}]`,
    help: 'put the code into a file and start that',
  });

const ALONE: Processes = {
  nodes: 1,
  perNode: 1,
  distributed: false,
  origin: { kind: 'derived', from: 'python starts one process' },
};

/**
 * Processes of a plain start. Somebody who starts every rank by hand sets WORLD_SIZE, and LOCAL_WORLD_SIZE where there are
 * several machines. Source: torch/distributed/distributed_c10d.py `_env_rendezvous_handler`, accelerate/state.py.
 */
export function processesOf({ environment, visibleGpus }: Position): {
  readonly value: Processes;
  readonly diagnostics: readonly Diagnostic[];
} {
  const name = WORLD_SIZES.find((each) => countOf(environment[each]) !== undefined) ?? 'WORLD_SIZE';
  const world = countOf(environment[name]);
  const ranked = countOf(environment.RANK) !== undefined || countOf(environment.LOCAL_RANK) !== undefined;
  if (world === undefined || world === 0 || (world === 1 && !ranked)) return { value: ALONE, diagnostics: [] };
  const origin = { kind: 'env', name } as const;
  const local = countOf(environment.LOCAL_WORLD_SIZE) ?? countOf(environment.OMPI_COMM_WORLD_LOCAL_SIZE);
  const elsewhere = !/^(?:|localhost|127\..*|::1)$/.test(environment.MASTER_ADDR ?? '');
  const perNode = local || (elsewhere && visibleGpus ? Math.min(world, visibleGpus) : elsewhere ? undefined : world);
  const diagnostics = [
    note('started-by-rank', `${name} says that this is one of ${world} processes that are started one by one`, {
      location: `env ${name}`,
    }),
  ];
  if (perNode === undefined || world % perNode !== 0) {
    return { value: { nodes: null, perNode: null, distributed: true, origin }, diagnostics };
  }
  return { value: { nodes: world / perNode, perNode, distributed: true, origin }, diagnostics };
}

/** The second is Open MPI's. Source: accelerate/utils/environment.py `get_int_from_env`. */
const WORLD_SIZES = ['WORLD_SIZE', 'OMPI_COMM_WORLD_SIZE'] as const;

const countOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d+$/.test(text.trim()) ? Number(text) : undefined;
