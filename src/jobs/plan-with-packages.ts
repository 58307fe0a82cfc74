import { type Diagnostic, note, type Ports } from '../core/index.ts';
import type { LaunchReading } from '../dialects/index.ts';
import type { Hardware } from '../hardware/index.ts';
import { LEVERS, type Surroundings } from '../planner/index.ts';
import type { SpecChange } from '../spec/index.ts';
import { importsIn } from './packages.ts';
import { trainerPython } from './trainer-python.ts';

type PackageName = keyof Surroundings['packages'];

/** The module to import for each package that levers ask for. */
const MODULES: Readonly<Record<PackageName, string>> = {
  bitsandbytes: 'bitsandbytes',
  flashAttn: 'flash_attn',
  liger: 'liger_kernel',
};

export interface PackageQuestion {
  readonly reading: LaunchReading;
  readonly hardware: Hardware;
  /** Whether the trainer is started on this machine. */
  readonly starts: boolean;
}

export interface PackagePlan<P> {
  readonly plan: P;
  readonly surroundings: Surroundings;
  readonly diagnostics: readonly Diagnostic[];
}

/** What is around a run before anything was asked of its Python. */
export const surroundingsOf = (
  ports: Ports,
  { reading, hardware, starts }: PackageQuestion,
  computeCapability: Surroundings['computeCapability'],
): Surroundings => ({
  writable: reading.writable,
  packages: { bitsandbytes: 'unknown', flashAttn: 'unknown', liger: 'unknown' },
  computeCapability,
  // A planned card sits in another machine, whose RAM nobody knows, unless the run starts here.
  hostRamBytes:
    starts || hardware.source !== 'planned' || reading.allocation?.hostRamBytes !== undefined
      ? hardware.host?.availableBytes
      : undefined,
  platform: ports.platform,
});

/**
 * Plans, and asks the trainer's Python for a package only when the plan rests on it: an import takes seconds, and most
 * plans need none. A package that is missing is ruled out and the plan made again, so each is asked once at most.
 */
export async function planWithPackages<P>(
  ports: Ports,
  question: PackageQuestion,
  surroundings: Surroundings,
  plan: (surroundings: Surroundings) => P,
  /** Every change the plan speaks of, also those of plans it only names. */
  changesOf: (plan: P) => readonly SpecChange[],
): Promise<PackagePlan<P>> {
  // Until a package was asked for it counts as there, so that no lever is lost for want of a question.
  const packages: Record<PackageName, boolean | 'unknown'> = { bitsandbytes: true, flashAttn: true, liger: true };
  const asked = new Set<PackageName>();
  for (const [name, known] of Object.entries(surroundings.packages) as [PackageName, boolean | 'unknown'][]) {
    if (known === 'unknown') continue;
    packages[name] = known;
    asked.add(name);
  }
  for (;;) {
    const made = plan({ ...surroundings, packages: { ...packages } });
    const used = packagesOf(changesOf(made));
    const next = used.find((name) => !asked.has(name));
    if (next !== undefined) {
      asked.add(next);
      packages[next] = await ask(ports, question, next);
      continue;
    }
    const settled = { ...packages };
    for (const name of PACKAGES) if (!asked.has(name)) settled[name] = 'unknown';
    const open = used.filter((name) => settled[name] === 'unknown');
    return { plan: made, surroundings: { ...surroundings, packages: settled }, diagnostics: open.map(assumed) };
  }
}

const PACKAGES = Object.keys(MODULES) as PackageName[];

const assumed = (name: PackageName): Diagnostic =>
  note(
    'package-assumed',
    `the plan rests on the package ${MODULES[name]}, which was not looked for: it is planned for another machine`,
  );

function packagesOf(changes: readonly SpecChange[]): PackageName[] {
  const used = new Set(changes.map((change) => change.lever));
  const needs = LEVERS.filter((lever) => used.has(lever.id)).flatMap((lever) => lever.needs);
  return [...new Set(needs.flatMap((need) => (need.kind === 'package' ? [need.name] : [])))];
}

/** A run that starts here needs the package here; a check for another machine may only assume it. */
async function ask(ports: Ports, question: PackageQuestion, name: PackageName): Promise<boolean | 'unknown'> {
  if (!question.starts && question.hardware.source === 'planned') return 'unknown';
  const python = trainerPython(ports, question.reading);
  const imports = python && (await importsIn(ports, python, MODULES[name]));
  return imports ?? (question.starts ? false : 'unknown');
}
