import type { Distributed } from '../../spec/index.ts';
import type { Dialect } from '../dialect.ts';
import { cannot, wrote } from '../hf-argparser/written.ts';
import type { TorchrunDetail } from './read.ts';

/** torchrun is only told how many processes a node has; who shards what is the trainer's business. */
export const writeTorchrun: NonNullable<Dialect<TorchrunDetail>['write']> = (layer, setting, to, stack) => {
  if (setting !== 'distributed') return undefined;
  const now = stack.spec.distributed?.value;
  const { strategy, offload, nodes, processesPerNode } = to as Distributed;
  if (!now || strategy !== now.strategy || offload.join() !== now.offload.join()) return undefined;
  if (nodes !== now.nodes) return cannot('torchrun is started on each node by somebody else');
  if (processesPerNode === now.processesPerNode) return wrote();
  const { perNode, optionsFrom } = layer.reading.detail;
  const text = String(processesPerNode);
  if (perNode) return wrote({ kind: 'token', index: perNode.valueIndex, text: `${perNode.before}${text}` });
  return wrote({ kind: 'insert', at: optionsFrom, key: '--nproc-per-node', tokens: ['--nproc-per-node', text] });
};
