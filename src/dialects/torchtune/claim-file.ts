import type { BareFile, FileClaim, FileValue } from '../dialect.ts';

/** How a config of torchtune is known when it is given alone. */
export const TORCHTUNE_SIGN = 'model with a _component_ of torchtune';

const componentOf = (value: FileValue | undefined): string => {
  const inner =
    value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, FileValue>) : {};
  return typeof inner._component_ === 'string' ? inner._component_ : '';
};

const DISTRIBUTED = [
  'fsdp_cpu_offload',
  'fsdp_reshard_after_forward',
  'custom_sharded_layers',
  'tensor_parallel_dim',
  'data_parallel_shard_dim',
  'data_parallel_replicate_dim',
  'context_parallel_dim',
];

/**
 * The config does not name its recipe. Adapters, preferences and keys of sharding tell the one it is for; a config that
 * could be for one GPU or several is taken for one.
 */
export function claimTorchtuneFile({ path, values }: BareFile): FileClaim | undefined {
  if (!/\.ya?ml$/.test(path)) return undefined;
  const model = componentOf(values.get('model'));
  const ours = ['model', 'tokenizer', 'checkpointer'].some((key) =>
    componentOf(values.get(key)).startsWith('torchtune.'),
  );
  if (!ours || model === '') return undefined;
  if (!values.has('optimizer')) {
    return {
      kind: 'unclear',
      what: 'a config of torchtune for a recipe that does not train',
      commands: [`tune run RECIPE --config ${path}`],
    };
  }
  const lora = /\.q?lora_[^.]+$/.test(model);
  const several = DISTRIBUTED.some((key) => values.has(key));
  const device = several ? 'distributed' : 'single_device';
  const prefers = /DPO|SimPO|RSO/.test(componentOf(values.get('loss')));
  const kind = prefers
    ? `${lora ? 'lora' : 'full'}_dpo`
    : values.has('teacher_model')
      ? 'knowledge_distillation'
      : `${lora ? 'lora' : 'full'}_finetune`;
  const options = several ? ['--nproc_per_node', 'gpu'] : [];
  return { kind: 'command', argv: ['tune', 'run', ...options, `${kind}_${device}`, '--config', path] };
}
