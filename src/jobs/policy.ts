import { join } from 'node:path';
import { type Diagnostic, error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { didYouMean, type NativePolicy, readPolicyFile } from '../dialects/index.ts';
import { DEFAULT_POLICY, LEVERS, type Policy } from '../planner/index.ts';
import { LEVER_CLASSES, NEUTRAL_VALUES, type SettingName, settingKey } from '../spec/index.ts';
import { createReadContext } from './launch-target.ts';

/** What flags say, names as typed; what is absent is left to the files. */
export type PolicyFlags = Omit<NativePolicy, 'places'>;

const LEVER_NAMES: readonly string[] = [...LEVER_CLASSES, ...LEVERS.map(({ id }) => id)];

/** Settings of a plan, by the names people write. */
const SETTINGS = new Map(
  ['perDeviceTrainBatchSize', 'maxLength', 'dtype', ...Object.keys(NEUTRAL_VALUES)].map((name) => [
    settingKey(name),
    name as SettingName,
  ]),
);

/**
 * The policy in force: flags over the launch's own `policy:`, over `.snug/policy.yaml` of the project, over
 * `~/.config/snug/policy.yaml`, over the defaults. Errors: a policy file that cannot be read, a lever, class or setting that
 * does not exist.
 */
export function mergePolicy(ports: Ports, fromLaunch: NativePolicy, flags: PolicyFlags): Result<Policy> {
  const context = createReadContext(ports, undefined, {});
  const personal = join(ports.environment.XDG_CONFIG_HOME || join(ports.homeDir, '.config'), 'snug', 'policy.yaml');
  const project = readPolicyFile(join(ports.cwd, '.snug', 'policy.yaml'), context);
  const home = readPolicyFile(personal, context);
  const problems: Diagnostic[] = [project, home].flatMap((read) => (read.ok ? [] : read.error));
  if (!project.ok || !home.ok) return fail(...problems);
  const layers: readonly NativePolicy[] = [home.value ?? {}, project.value ?? {}, fromLaunch, flags];
  const wrong = layers.flatMap(wrongNames);
  if (wrong.length > 0) return fail(...wrong);
  const { places: _places, keep, ...said } = Object.assign({}, ...layers) as NativePolicy;
  return ok({
    ...DEFAULT_POLICY,
    ...said,
    ...(keep ? { keep: keep.map((name) => SETTINGS.get(settingKey(name))!) } : {}),
  });
}

/** Names that mean nothing, each with its place and what may have been meant. */
function wrongNames(layer: NativePolicy): readonly Diagnostic[] {
  const unknown = (key: 'allow' | 'forbid' | 'keep', known: readonly string[], what: string): Diagnostic[] =>
    (layer[key] ?? [])
      .filter((name) => !known.includes(key === 'keep' ? settingKey(name) : name))
      .map((name) =>
        error('unknown-name', `'${name}' is no ${what}`, {
          location: layer.places?.[key] ?? `--${key}`,
          help: didYouMean(name, known).replace(/^take the key out.*/, `known are ${known.join(', ')}`),
        }),
      );
  return [
    ...unknown('allow', LEVER_NAMES, 'class of changes and no lever'),
    ...unknown('forbid', LEVER_NAMES, 'class of changes and no lever'),
    ...unknown('keep', [...SETTINGS.keys()], 'setting of a plan'),
  ];
}
