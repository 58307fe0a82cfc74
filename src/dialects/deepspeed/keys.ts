import type { OptionTable } from '../scan-options.ts';

/** Options of DeepSpeed 0.19's launcher. Source: deepspeed/launcher/runner.py `parse_args`. */
export const DEEPSPEED_OPTIONS: OptionTable = {
  style: 'argparse-abbreviated',
  flags: [
    ...['-h|--help', '--module', '--no_python', '--no_local_rank', '--no_ssh', '--no_ssh_check', '--force_multi'],
    ...['--save_pid', '--elastic_training', '--bind_cores_to_rank'],
  ],
  values: [
    ...['-H|--hostfile', '-i|--include', '-e|--exclude', '--num_nodes', '--num_accelerators|--num_gpus'],
    ...['--min_elastic_nodes', '--max_elastic_nodes', '--master_port', '--master_addr', '--node_rank', '--launcher'],
    ...['--launcher_args', '--enable_each_rank_log', '--autotuning', '--comment', '--account', '--bind_core_list'],
    ...['--ssh_port', '--venv_script'],
  ],
};

/** Where the launcher looks for hosts without being told. */
export const DEFAULT_HOSTFILE = '/job/hostfile';

/** Options that decide how many processes there are, and what they run. */
export const READ_OPTIONS: ReadonlySet<string> = new Set([
  ...['--hostfile', '--include', '--exclude', '--num_nodes', '--num_gpus', '--module', '--no_python'],
  '--autotuning',
]);
