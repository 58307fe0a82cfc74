import { type Diagnostic, warning } from '../../core/index.ts';
import type { Origin } from '../../spec/index.ts';
import type { Position, Processes, Reading } from '../dialect.ts';
import type { LlamaFactoryStart } from './detect.ts';

export type LlamaFactoryProcesses = Pick<Reading, 'processes' | 'env'> & {
  readonly diagnostics: readonly Diagnostic[];
};

/** `is_env_enabled` of llamafactory/extras/misc.py. */
const isOn = (value: string | undefined): boolean => /^(?:true|y|1)$/i.test(value ?? '');

/**
 * Its own command starts torchrun over all visible GPUs where there are several, and always with FORCE_TORCHRUN; else the
 * trainer runs in this very process. Source: llamafactory/launcher.py `launch`.
 */
export function readProcesses(
  start: LlamaFactoryStart,
  position: Position,
  usesDeepSpeed: boolean,
): LlamaFactoryProcesses {
  const { environment, visibleGpus } = position;
  if (start.form === 'script') return { diagnostics: alone(start, position, usesDeepSpeed) };
  const forced = ['FORCE_TORCHRUN', 'USE_MCA'].find((name) => isOn(environment[name]));
  const others = ['USE_RAY', 'USE_KT', 'USE_V1'].filter((name) => isOn(environment[name]));
  const notEstimated = [...others, ...(isOn(environment.USE_MCA) ? ['USE_MCA'] : [])].map((name) =>
    warning('not-estimated', `${name} starts another trainer of LLaMA-Factory, which is not estimated`, {
      location: `env ${name}`,
    }),
  );
  const seen: Origin = {
    kind: 'derived',
    from: visibleGpus === undefined ? 'the visible GPUs, unknown here' : 'the visible GPUs',
  };
  const perNode = countOf(environment.NPROC_PER_NODE);
  if (!forced && (visibleGpus === undefined || visibleGpus <= 1)) {
    const processes: Processes = {
      nodes: 1,
      perNode: visibleGpus === undefined ? null : 1,
      distributed: false,
      origin: seen,
    };
    return {
      processes,
      diagnostics: [...notEstimated, ...needsTorchrun(usesDeepSpeed && visibleGpus !== undefined, start)],
    };
  }
  const nodes = countOf(
    environment.RDZV_ID === undefined ? environment.NNODES : (environment.MIN_NNODES ?? environment.NNODES),
  );
  const processes: Processes = {
    nodes: nodes ?? 1,
    perNode: perNode ?? visibleGpus ?? null,
    distributed: true,
    origin: perNode === undefined ? seen : { kind: 'env', name: 'NPROC_PER_NODE' },
  };
  return { processes, ...allocator(environment), diagnostics: notEstimated };
}

/** OPTIM_TORCH is on unless it is switched off, and writes over what was there. */
function allocator(environment: Position['environment']): Pick<Reading, 'env'> {
  if (environment.OPTIM_TORCH !== undefined && !isOn(environment.OPTIM_TORCH)) return {};
  return { env: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' } };
}

const countOf = (text: string | undefined): number | undefined =>
  text !== undefined && /^[1-9]\d*$/.test(text) ? Number(text) : undefined;

/** One plain process that sees several GPUs is refused. Source: hparams/parser.py `get_train_args`. */
function alone(start: LlamaFactoryStart, { above, visibleGpus }: Position, usesDeepSpeed: boolean): Diagnostic[] {
  const launched = above.findLast((layer) => layer.reading.processes)?.reading.processes;
  if (launched?.distributed) return [];
  if ((visibleGpus ?? 1) > 1) {
    return [
      warning('not-distributed', `LLaMA-Factory stops in one process that sees ${visibleGpus} GPUs`, {
        location: `argv[${start.claim.from}]`,
        help: 'start it with llamafactory-cli train or torchrun, or show it one GPU with CUDA_VISIBLE_DEVICES=0',
      }),
    ];
  }
  return needsTorchrun(usesDeepSpeed, start);
}

const needsTorchrun = (usesDeepSpeed: boolean, start: LlamaFactoryStart): Diagnostic[] =>
  usesDeepSpeed
    ? [
        warning('not-distributed', 'LLaMA-Factory stops where DeepSpeed is on in one plain process', {
          location: `argv[${start.claim.from}]`,
          help: 'put FORCE_TORCHRUN=1 before the command',
        }),
      ]
    : [];
