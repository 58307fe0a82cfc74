import type { Dialect } from '../dialect.ts';
import { ACCELERATE_EXAMPLES } from './example.ts';
import { optionsOfAccelerate, readLauncher } from './launcher.ts';
import type { AccelerateDetail } from './read.ts';
import { followAccelerate, writeAccelerate } from './write.ts';

/** `accelerate launch`, `accelerate-launch`, `python -m accelerate.commands.launch`. */
export const accelerate: Dialect<AccelerateDetail> = {
  id: 'accelerate',
  kind: 'launcher',
  title: 'accelerate launch',
  docs: 'https://huggingface.co/docs/accelerate/package_reference/cli#accelerate-launch',
  examples: ACCELERATE_EXAMPLES,
  standIn: 'distributed_type: MULTI_GPU\n',
  detect(position) {
    if (position.target || position.engine) return undefined;
    const from = optionsOfAccelerate(position);
    return from === undefined ? undefined : { from: position.index, to: from };
  },
  read: readLauncher,
  write: writeAccelerate,
  follow: followAccelerate,
};

export { type AccelerateDetail, readAccelerateOptions } from './read.ts';
export { setOption } from './write.ts';
