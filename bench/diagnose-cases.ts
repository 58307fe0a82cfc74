import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { classify, type Failure, type FailureKind, type Resource, readLog, verdictOf } from '../src/diagnosis/index.ts';

/** A public case, re-created: its log, and what its thread found to be true. */
interface Case {
  readonly id: string;
  readonly kind: FailureKind;
  readonly log: string;
  readonly confidence: string;
  readonly expected: { readonly verdict: string };
}

const RESOURCES: Partial<Record<FailureKind, Resource>> = {
  host_ram: 'host_ram',
  dataloader_ram: 'host_ram',
  cgroup: 'host_ram',
  swap_thrash: 'host_ram',
  shm: 'shm',
  disk: 'disk',
  not_memory: 'none',
};
const resourceOf = (kind: FailureKind): Resource => RESOURCES[kind] ?? 'vram';

interface Score {
  readonly one: Case;
  readonly failure: Failure | undefined;
  readonly resource: boolean;
  readonly kind: boolean;
  readonly verdict: boolean;
  readonly misses: readonly string[];
}

function score(one: Case): Score {
  const failure = classify(readLog(new TextEncoder().encode(one.log)));
  // The text alone does not decide: the first candidate stands for the kind, and "cannot tell" is the verdict to give.
  const open = failure?.kind === 'unknown' && failure.candidates[0] === one.kind;
  const kind = failure?.kind === one.kind || open;
  // A wrong setting has no resource of its own; which one it filled depends on the setting.
  const resource = one.kind === 'config_bug' || open || failure?.resource === resourceOf(one.kind);
  const given = failure ? verdictOf(failure) : 'none';
  const verdict = given === one.expected.verdict || open;
  const misses = [
    ...(resource ? [] : [`resource ${failure?.resource ?? 'none'} instead of ${resourceOf(one.kind)}`]),
    ...(kind ? [] : [`kind ${failure?.kind ?? 'none'} instead of ${one.kind}`]),
    ...(verdict ? [] : [`verdict ${given} instead of ${one.expected.verdict}`]),
  ];
  return { one, failure, resource, kind, verdict, misses };
}

const share = (scores: readonly Score[], what: 'resource' | 'kind' | 'verdict'): string => {
  const right = scores.filter((one) => one[what]).length;
  return `${what} ${right} (${((100 * right) / scores.length).toFixed(1)} %)`;
};

/** how many of a folder of public cases are read right, each miss with what was said. */
export async function main([folder = '../shared/oom-cases']: readonly string[]): Promise<number> {
  if (!existsSync(folder)) {
    console.log(`no cases in ${folder}`);
    return 0;
  }
  const cases = readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .sort()
    .map((name): Case => JSON.parse(readFileSync(join(folder, name), 'utf8')));
  const scores = cases.map(score);
  for (const confidence of ['high', 'medium', 'low']) {
    const those = scores.filter(({ one }) => one.confidence === confidence);
    if (those.length === 0) continue;
    const parts = (['resource', 'kind', 'verdict'] as const).map((what) => share(those, what));
    console.log(`${confidence.padEnd(6)} ${String(those.length).padStart(3)} cases: right ${parts.join(', ')}`);
  }
  for (const { one, failure, misses } of scores) {
    if (misses.length === 0) continue;
    const said = failure
      ? `${failure.confidence} confidence, phase ${failure.phase}, then ${failure.candidates.join(', ') || 'nothing else'}`
      : 'no failure seen';
    console.log(`  ${one.id} (${one.confidence}): ${misses.join('; ')} (${said})`);
  }
  return 0;
}
