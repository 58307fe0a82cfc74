import { ok } from '../../core/index.ts';
import type { Dialect } from '../dialect.ts';
import { DEEPSPEED_CONFIG_EXAMPLES } from './example.ts';
import { type DeepSpeedDetail, readDeepSpeedConfig } from './read.ts';
import { followDeepSpeed, writeDeepSpeed } from './write.ts';

/** The JSON that a trainer's `--deepspeed` or accelerate's `deepspeed_config_file` names. */
export const deepspeedConfig: Dialect<DeepSpeedDetail> = {
  id: 'deepspeed-config',
  kind: 'engine',
  title: 'DeepSpeed config',
  docs: 'https://www.deepspeed.ai/docs/config-json/',
  examples: DEEPSPEED_CONFIG_EXAMPLES,
  detect: ({ engine, index }) => (engine?.dialect === 'deepspeed-config' ? { from: index, to: index } : undefined),
  read(_, { engine, above }) {
    const reading = readDeepSpeedConfig(engine!.file!, above);
    return reading.ok ? ok(reading.value) : reading;
  },
  fileSign: 'zero_optimization or train_micro_batch_size_per_gpu',
  claimFile: ({ path, values }) =>
    values.has('zero_optimization') || values.has('train_micro_batch_size_per_gpu')
      ? {
          kind: 'unclear',
          what: 'a config of DeepSpeed',
          commands: [`deepspeed train.py --deepspeed ${path} …`],
          presumed: ['deepspeed', 'train.py', '--do_train', '--deepspeed', path],
        }
      : undefined,
  write: writeDeepSpeed,
  follow: followDeepSpeed,
};
