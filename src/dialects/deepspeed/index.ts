import type { Dialect } from '../dialect.ts';
import { type DeepSpeedLaunchDetail, optionsOfDeepSpeed, readDeepSpeedLaunch } from './read.ts';
import { writeDeepSpeedLaunch } from './write.ts';

/** `deepspeed --num_gpus 4 train.py …`: starts a process for each GPU of each host. */
export const deepspeed: Dialect<DeepSpeedLaunchDetail> = {
  id: 'deepspeed',
  kind: 'launcher',
  title: 'deepspeed',
  docs: 'https://www.deepspeed.ai/getting-started/#launching-deepspeed-training',
  examples: [{ command: 'deepspeed --num_gpus 2 train.py --output_dir out' }],
  detect(position) {
    if (position.target || position.engine) return undefined;
    const from = optionsOfDeepSpeed(position);
    return from === undefined ? undefined : { from: position.index, to: from };
  },
  read: readDeepSpeedLaunch,
  write: writeDeepSpeedLaunch,
};
