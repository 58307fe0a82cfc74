import type { Dialect } from '../dialect.ts';
import { optionsOfTorchrun, readTorchrun, type TorchrunDetail } from './read.ts';
import { writeTorchrun } from './write.ts';

/** `torchrun`, `python -m torch.distributed.run` and the older `torch.distributed.launch`. */
export const torchrun: Dialect<TorchrunDetail> = {
  id: 'torchrun',
  kind: 'launcher',
  title: 'torchrun',
  docs: 'https://docs.pytorch.org/docs/stable/elastic/run.html',
  examples: [{ command: 'torchrun --nproc-per-node 2 train.py --output_dir out' }],
  detect(position) {
    if (position.target || position.engine) return undefined;
    const from = optionsOfTorchrun(position);
    return from === undefined ? undefined : { from: position.index, to: from };
  },
  read: readTorchrun,
  write: writeTorchrun,
};

export { badOption, processesOfOptions } from './read.ts';
