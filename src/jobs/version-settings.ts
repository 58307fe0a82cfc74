import { type Diagnostic, note } from '../core/index.ts';
import type { FoundVersions } from '../dialects/index.ts';
import { NEUTRAL_VALUES, type TrainingSpec, type Versions } from '../spec/index.ts';

/** Packages by their names in an environment, and what their versions are called in a spec. */
const PACKAGES: Readonly<Record<string, keyof Versions>> = {
  torch: 'torch',
  transformers: 'transformers',
  peft: 'peft',
  trl: 'trl',
  bitsandbytes: 'bitsandbytes',
  'flash-linear-attention': 'fla',
  'mamba-ssm': 'mambaSsm',
  'causal-conv1d': 'causalConv1d',
};

/** What was found of the packages that decide what a step keeps; the newest known for the others. */
export function versionSetting(found: FoundVersions, { versions }: TrainingSpec): TrainingSpec {
  if (versions && versions.origin.kind !== 'default') return {};
  const known = Object.entries(PACKAGES).flatMap(([name, setting]) =>
    found[name] ? [[setting, found[name].version] as const] : [],
  );
  const first = Object.keys(PACKAGES)
    .map((name) => found[name])
    .find((each) => each !== undefined);
  if (!first) return {};
  const value = { ...NEUTRAL_VALUES.versions, ...Object.fromEntries(known) };
  return { versions: { value, origin: { kind: 'derived', from: first.place } } };
}

/** Tools whose defaults stand in a spec and moved between versions. */
const MOVING: ReadonlySet<string> = new Set(['trl', 'transformers', 'llamafactory']);

/** Defaults that were taken from a version nobody named. */
export function assumedVersions(spec: TrainingSpec, found: FoundVersions): Diagnostic[] {
  const assumed = new Map<string, string>();
  for (const setting of Object.values(spec)) {
    const origin = setting?.origin;
    if (origin?.kind === 'default' && MOVING.has(origin.tool) && !found[origin.tool])
      assumed.set(origin.tool, origin.version);
  }
  const names = [...assumed].map(([tool, version]) => `${tool} ${version}`);
  if (names.length === 0) return [];
  return [
    note(
      'assumed-version',
      `the defaults are those of ${names.join(' and ')}: no installed or locked version was found`,
    ),
  ];
}
