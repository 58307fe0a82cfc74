import type { OptionTable } from '../scan-options.ts';

/** Options of torch 2.13's launcher; torch.distributed.launch has `--use-env` besides. Source: torch/distributed/run.py. */
export const TORCHRUN_OPTIONS: OptionTable = {
  style: 'argparse-abbreviated',
  flags: ['--standalone', '-m|--module', '--no-python', '--run-path', '--virtual-local-rank', '--use-env', '-h|--help'],
  values: [
    ...['--nnodes', '--nproc-per-node', '--rdzv-backend', '--rdzv-endpoint', '--rdzv-id', '--rdzv-conf'],
    ...['--max-restarts', '--monitor-interval', '--start-method', '--event-log-handler', '--role', '--log-dir'],
    ...['-r|--redirects', '-t|--tee', '--local-ranks-filter', '--duplicate-stdout-filters'],
    ...['--duplicate-stderr-filters', '--node-rank', '--master-addr', '--master-port', '--local-addr'],
    ...['--logs-specs', '--numa-binding', '--signals-to-handle', '--shutdown-timeout'],
  ],
};

/** What a missing option means there. */
export const TORCHRUN_DEFAULT = { kind: 'default', tool: 'torchrun', version: '2.13' } as const;

export const TORCHRUN_MODULES: readonly string[] = ['torch.distributed.run', 'torch.distributed.launch'];

/** Variable that stands for an option: `--nproc-per-node` is PET_NPROC_PER_NODE. Source: torch/distributed/argparse_util.py. */
export const variableOf = (option: string): string => `PET_${option.slice(2).replaceAll('-', '_').toUpperCase()}`;
