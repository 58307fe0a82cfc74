import { type Diagnostic, note } from '../core/index.ts';
import type { FoundVersions } from '../dialects/index.ts';
import { NEUTRAL_VALUES, type TrainingSpec } from '../spec/index.ts';

/** What was found of the packages that decide what a step keeps; the newest known for the others. */
export function versionSetting(found: FoundVersions, { versions }: TrainingSpec): TrainingSpec {
  if (versions && versions.origin.kind !== 'default') return {};
  const names = ['torch', 'transformers', 'peft', 'trl', 'bitsandbytes'] as const;
  const known = names.flatMap((name) => (found[name] ? [[name, found[name].version] as const] : []));
  const first = names.map((name) => found[name]).find((each) => each !== undefined);
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
