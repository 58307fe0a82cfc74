import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import type { LaunchTarget } from '../jobs/index.ts';

const CONFIG_FILE = /\.(ya?ml|json)$/i;
const DEFAULT_CONFIG = 'snug.yaml';

/**
 * What stands before and after `--`. commander drops the `--` itself, so the raw command line tells how many of the operands
 * came after it. Ends in a usage error that shows the line to type.
 */
export function readLaunchArgs(launch: readonly string[], command: Command): LaunchTarget[] {
  const raw = process.argv.slice(2);
  const dashes = raw.indexOf('--');
  const after = dashes < 0 ? [] : raw.slice(dashes + 1);
  const before = launch.slice(0, launch.length - after.length);
  const name = command.name();
  if (dashes >= 0 && after.length === 0) {
    command.error(`error[usage]: there is no command after --\n  help: snug ${name} -- python train.py …`);
  }
  if (after.length > 0 && before.length > 0) {
    command.error(
      `error[usage]: both a config (${before[0]}) and a command (${after[0]}) were given\n  help: give one: snug ${name} ${before[0]}, or snug ${name} -- ${after.join(' ')}`,
    );
  }
  if (after.length > 0) return [{ kind: 'command', argv: after }];
  const stranger = before.find((path) => !CONFIG_FILE.test(path) && !existsSync(path.replace(/:\d+$/, '')));
  if (stranger !== undefined) {
    command.error(
      `error[usage]: '${stranger}' is neither a command of snug nor a config file\n  help: put -- before a training command: snug ${name === 'snug' ? 'run' : name} -- ${before.join(' ')}`,
    );
  }
  if (before.length === 0 && !existsSync(DEFAULT_CONFIG)) {
    command.error(
      `error[usage]: nothing to ${name}\n  help: snug ${name} snug.yaml, or snug ${name} -- python train.py …`,
    );
  }
  return (before.length > 0 ? before : [DEFAULT_CONFIG]).map((path) => ({ kind: 'config', path }));
}
