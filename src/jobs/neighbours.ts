import { isAbsolute, join } from 'node:path';
import { type Diagnostic, type Ports, warning } from '../core/index.ts';
import type { Gpu } from '../hardware/index.ts';
import { type NamedProcess, nameProcess, stillRuns } from './processes.ts';

/** A run of snug on this machine, as it tells the others of itself. */
interface Neighbour {
  readonly process: NamedProcess;
  readonly runFolder: string;
  /** Absolute; null: not known. */
  readonly outputDir: string | null;
  readonly gpus: readonly string[];
}

export interface Neighbourhood {
  /** Runs that use the same card or write into the same folder. */
  readonly found: readonly Diagnostic[];
  /** This run is over. */
  readonly leave: () => void;
}

const registry = ({ environment, homeDir }: Ports): string =>
  join(environment.XDG_CACHE_HOME || join(homeDir, '.cache'), 'snug', 'running');

function readNeighbour(ports: Ports, path: string): Neighbour | undefined {
  const text = ports.files.readText(path);
  try {
    return text.ok ? (JSON.parse(text.value) as Neighbour) : undefined;
  } catch {
    return undefined;
  }
}

function clash(ours: Neighbour, { process, runFolder, outputDir, gpus }: Neighbour): Diagnostic | undefined {
  const note = `its run folder is ${runFolder}`;
  if (outputDir !== null && outputDir === ours.outputDir) {
    return warning(
      'same-output-folder',
      `another run of snug (process ${process.pid}) writes into ${outputDir} as well`,
      {
        notes: [note, 'two trainers in one output folder write over each other'],
        help: `end one of them, or give this one another output folder`,
      },
    );
  }
  if (!gpus.some((uuid) => ours.gpus.includes(uuid))) return undefined;
  return warning('same-card', `another run of snug (process ${process.pid}) uses this card as well`, {
    notes: [note],
    help: 'wait for it, or choose another card with CUDA_VISIBLE_DEVICES',
  });
}

export interface OwnRun {
  readonly pid: number;
  readonly runFolder: string;
  readonly outputDir: string | undefined;
  readonly gpus: readonly Pick<Gpu, 'uuid'>[];
}

/** Tells other runs of snug on this machine of this one, and finds those it gets in the way of. Where nothing can be written, nobody is told. */
export function joinNeighbourhood(ports: Ports, { pid, runFolder, outputDir, gpus }: OwnRun): Neighbourhood {
  const folder = registry(ports);
  const process = nameProcess(pid)!;
  const absolute = outputDir === undefined || isAbsolute(outputDir) ? outputDir : join(ports.cwd, outputDir);
  const ours: Neighbour = { process, runFolder, outputDir: absolute ?? null, gpus: gpus.map(({ uuid }) => uuid) };
  const own = join(folder, `${process.host}-${pid}.json`);
  const found: Diagnostic[] = [];
  for (const name of ports.files.list(folder)) {
    const path = join(folder, name);
    const other = path === own ? undefined : readNeighbour(ports, path);
    if (!other) continue;
    const runs = stillRuns(other.process);
    // Left by one that was killed.
    if (runs === false) ports.store.remove(path);
    const diagnostic = runs ? clash(ours, other) : undefined;
    if (diagnostic) found.push(diagnostic);
  }
  if (ports.store.makeFolder(folder).ok) ports.store.writeAtomic(own, `${JSON.stringify(ours)}\n`);
  return { found, leave: () => void ports.store.remove(own) };
}
