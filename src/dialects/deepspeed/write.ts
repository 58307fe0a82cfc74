import type { Distributed } from '../../spec/index.ts';
import type { Dialect } from '../dialect.ts';
import { cannot, wrote } from '../hf-argparser/written.ts';
import type { DeepSpeedLaunchDetail } from './read.ts';

/** The launcher is only told how many GPUs a node has; who shards what stands in the DeepSpeed config. */
export const writeDeepSpeedLaunch: NonNullable<Dialect<DeepSpeedLaunchDetail>['write']> = (
  layer,
  setting,
  to,
  stack,
) => {
  if (setting !== 'distributed') return undefined;
  const now = stack.spec.distributed?.value;
  const { strategy, offload, nodes, processesPerNode } = to as Distributed;
  if (!now || strategy !== now.strategy || offload.join() !== now.offload.join()) return undefined;
  if (nodes !== now.nodes) return cannot('the nodes are those of the hostfile');
  if (processesPerNode === now.processesPerNode) return wrote();
  const { perNode, filtered, optionsFrom } = layer.reading.detail;
  if (filtered) return cannot('--include or --exclude chooses the GPUs one by one');
  const text = String(processesPerNode);
  if (perNode) return wrote({ kind: 'token', index: perNode.valueIndex, text: `${perNode.before}${text}` });
  return wrote({ kind: 'insert', at: optionsFrom, key: '--num_gpus', tokens: ['--num_gpus', text] });
};
