import { fail, ok } from '../../core/index.ts';
import type { Dialect } from '../dialect.ts';
import { ACCELERATE_CONFIG_EXAMPLES } from './example.ts';
import { readMixedPrecision } from './precision.ts';
import { readAccelerateConfig } from './read.ts';

/**
 * The YAML (or JSON) file of `accelerate launch`. Its launcher reads it together with the flags that win over it; alone, as
 * a file that another layer names, it says what autocast it asks for.
 */
export const accelerateConfig: Dialect = {
  id: 'accelerate-config',
  kind: 'engine',
  title: 'accelerate config',
  docs: 'https://huggingface.co/docs/accelerate/package_reference/cli#accelerate-config',
  examples: ACCELERATE_CONFIG_EXAMPLES,
  detect: ({ engine, index }) => (engine?.dialect === 'accelerate-config' ? { from: index, to: index } : undefined),
  fileSign: 'distributed_type with num_processes',
  claimFile: ({ path, values }) =>
    values.has('distributed_type') && (values.has('compute_environment') || values.has('num_processes'))
      ? {
          kind: 'unclear',
          what: 'a config of accelerate',
          commands: [`accelerate launch --config_file ${path} train.py …`],
          presumed: ['accelerate', 'launch', '--config_file', path, 'train.py'],
        }
      : undefined,
  read(_claim, { engine }) {
    const config = readAccelerateConfig(engine!.file!.source);
    if (!config.ok) return fail(...config.error);
    const { setting, diagnostics } = readMixedPrecision((option) => config.value.values.get(option));
    return ok({
      spec: { mixedPrecision: setting },
      detail: undefined,
      unread: config.value.unread,
      diagnostics: [...config.value.diagnostics, ...diagnostics],
    });
  },
};

export { type DeepSpeedStage, deepSpeedStageOf, readDeepSpeedStage, shardingOfStage } from './deepspeed-json.ts';
export { ACCELERATE_DEFAULT, keyPathOf, unreadFsdp } from './keys.ts';
export { readMixedPrecision } from './precision.ts';
export { type AccelerateConfig, type Given, readAccelerateConfig } from './read.ts';
export { type Lookup, modelParallel, readDeepSpeed, readFsdp, readOther, type ShardingReading } from './sharding.ts';
