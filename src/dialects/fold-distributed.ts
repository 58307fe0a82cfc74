import { type Diagnostic, warning } from '../core/index.ts';
import { formatOrigin, type Origin, type Setting, type Strategy, type TrainingValues } from '../spec/index.ts';
import type { Parallelism } from './contract.ts';
import type { Layer, Processes, Sharding } from './dialect.ts';

const ALONE: Processes = {
  nodes: 1,
  perNode: 1,
  distributed: false,
  origin: { kind: 'derived', from: 'one plain process' },
};

/** Joins who starts how many processes with who shards; the innermost word holds, trainer over engine over launcher. */
export function foldDistributed(layers: readonly Layer[]): {
  readonly setting: Setting<TrainingValues['distributed']>;
  readonly parallelism: Parallelism;
  readonly diagnostics: readonly Diagnostic[];
} {
  const processes = layers.findLast((layer) => layer.reading.processes)?.reading.processes ?? ALONE;
  const sharding = innermostSharding(layers);
  const origin = moreTelling(processes.origin, sharding?.origin);
  const strategy: Strategy | null = sharding ? sharding.strategy : processes.distributed ? 'ddp' : 'none';
  const { nodes, perNode } = processes;
  const parallelism = { nodes, processesPerNode: perNode, strategy, offload: sharding?.offload ?? [] };
  if (nodes === null || perNode === null) {
    return {
      parallelism,
      setting: { value: null, origin },
      diagnostics: [
        warning('unknown-processes', 'how many processes this launch starts cannot be known here', {
          location: formatOrigin(processes.origin),
          help: 'name the number, or the GPUs with --gpu MODEL:COUNT',
        }),
      ],
    };
  }
  if (strategy === null) return { parallelism, setting: { value: null, origin: sharding!.origin }, diagnostics: [] };
  const value = { ...parallelism, nodes, processesPerNode: perNode, strategy };
  return { parallelism, setting: { value, origin }, diagnostics: [] };
}

const RANK = { trainer: 2, engine: 1, launcher: 0, wrapper: 0 } as const;

/** A trainer that only says "an engine is on" (`strategy: null`) leaves the stage to the engine, never to a launcher. */
function innermostSharding(layers: readonly Layer[]): Sharding | undefined {
  const said = layers
    .filter((layer) => layer.reading.sharding)
    .sort((a, b) => RANK[b.dialect.kind] - RANK[a.dialect.kind]);
  const first = said[0];
  if (!first || first.reading.sharding!.strategy !== null) return first?.reading.sharding;
  const engine = said.find((layer) => layer.dialect.kind === 'engine' && layer.reading.sharding!.strategy !== null);
  return (engine ?? first).reading.sharding;
}

/** A number that somebody wrote says more than a rule that gave it. */
const moreTelling = (processes: Origin, sharding: Origin | undefined): Origin =>
  sharding && processes.kind !== 'argv' && processes.kind !== 'file' ? sharding : processes;
