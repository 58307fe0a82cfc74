import { join } from 'node:path';
import { type Diagnostic, fail, ok, type Ports, type Result } from '../core/index.ts';
import { type NativePolicy, readPolicyFile } from '../dialects/index.ts';
import { DEFAULT_POLICY, type Policy } from '../planner/index.ts';
import { createReadContext } from './launch-target.ts';

/** What flags say; what is absent is left to the files. */
export type PolicyFlags = Partial<Policy>;

/**
 * The policy in force: flags over the launch's own `policy:`, over `.snug/policy.yaml` of the project, over
 * `~/.config/snug/policy.yaml`, over the defaults. Errors: a policy file that cannot be read.
 */
export function mergePolicy(ports: Ports, fromLaunch: NativePolicy, flags: PolicyFlags): Result<Policy> {
  const context = createReadContext(ports, undefined, {});
  const personal = join(ports.environment.XDG_CONFIG_HOME || join(ports.homeDir, '.config'), 'snug', 'policy.yaml');
  const project = readPolicyFile(join(ports.cwd, '.snug', 'policy.yaml'), context);
  const home = readPolicyFile(personal, context);
  const problems: Diagnostic[] = [project, home].flatMap((read) => (read.ok ? [] : read.error));
  if (!project.ok || !home.ok) return fail(...problems);
  return ok({ ...DEFAULT_POLICY, ...home.value, ...project.value, ...fromLaunch, ...flags });
}
