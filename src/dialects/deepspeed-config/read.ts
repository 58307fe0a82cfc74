import { type Diagnostic, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type Origin, type Setting, type SettingName, type TrainingSpec } from '../../spec/index.ts';
import { readDeepSpeedStage, shardingOfStage } from '../accelerate-config/index.ts';
import type { FileReference, FileValue, Layer, Reading } from '../dialect.ts';
import { type JsonNode, lineAt, parseJson } from '../json-text.ts';
import { unreadOf } from './unread.ts';

export interface DeepSpeedDetail {
  readonly file: FileReference;
  /** Keys that hold a number of their own, not `auto`. */
  readonly concrete: ReadonlySet<string>;
}

/** Keys that must agree with what the trainer is told. */
export const SHARED_KEYS: Readonly<Partial<Record<SettingName, string>>> = {
  perDeviceTrainBatchSize: 'train_micro_batch_size_per_gpu',
  gradientAccumulationSteps: 'gradient_accumulation_steps',
};

/** Stage and offload. `auto` is filled by the trainer from its own arguments; a stage that is not there is 0. */
export function readDeepSpeedConfig(file: FileReference, above: readonly Layer[]): Result<Reading<DeepSpeedDetail>> {
  const { source } = file;
  const parsed = parseJson(source.text, source.path);
  if (!parsed.ok) return parsed;
  const read = readDeepSpeedStage(source);
  if (!read.ok) return read;
  const { optimizerDevice, parameterDevice } = read.value;
  const origin: Origin = source.missing
    ? { kind: 'derived', from: `the name ${source.path}` }
    : originOf(parsed.value, ['zero_optimization', 'stage'], file);
  const sharding = shardingOfStage(read.value, origin);
  const numbers = Object.values(SHARED_KEYS).filter((key) => typeof memberOf(parsed.value, key)?.value === 'number');
  return ok({
    spec: ownSettings(parsed.value, file),
    ...(sharding.strategy ? { sharding } : {}),
    files: [file],
    unread: unreadOf(parsed.value, file),
    diagnostics: [...mismatches(parsed.value, file, above), ...onDisk([optimizerDevice, parameterDevice], origin)],
    detail: { file, concrete: new Set(numbers) },
  });
}

/** What the file says itself; `auto` and what is not there are the trainer's to say. */
function ownSettings(root: JsonNode, file: FileReference): TrainingSpec {
  const setting = <T>(keyPath: readonly string[], value: T): Setting<T> => ({
    value,
    origin: originOf(root, keyPath, file),
  });
  const numbers = Object.entries(SHARED_KEYS).flatMap(([name, key]) => {
    const value = memberOf(root, key)?.value;
    return typeof value === 'number' ? [[name, setting([key], value)]] : [];
  });
  const enabled = (key: string): boolean => enabledIn(memberOf(root, key)) === true;
  const precision = enabled('fp16') ? 'fp16' : enabled('bf16') ? 'bf16' : undefined;
  const clip = memberOf(root, 'gradient_clipping')?.value;
  const optimizer = optimizerOf(root);
  return {
    ...Object.fromEntries(numbers),
    ...(precision ? { mixedPrecision: setting([precision, 'enabled'], precision) } : {}),
    ...(typeof clip === 'number' ? { maxGradNorm: setting(['gradient_clipping'], clip) } : {}),
    ...(optimizer ? { optim: setting(['optimizer', 'type'], optimizer) } : {}),
  };
}

const enabledIn = (node: JsonNode | undefined): FileValue | undefined =>
  node && memberOf(node, 'enabled') ? memberOf(node, 'enabled')!.value : undefined;

/** DeepSpeed's own optimizers under the names of transformers that keep as much. Source: runtime/engine.py `_configure_basic_optimizer`. */
const OPTIMIZERS: Readonly<Record<string, string>> = {
  adam: 'adamw_torch_fused',
  adamw: 'adamw_torch_fused',
  sgd: 'sgd',
  lion: 'lion_32bit',
  adagrad: 'adagrad',
};

function optimizerOf(root: JsonNode): string | undefined {
  const node = memberOf(root, 'optimizer');
  const type = node && memberOf(node, 'type')?.value;
  return typeof type === 'string' ? OPTIMIZERS[type.toLowerCase()] : undefined;
}

const memberOf = (node: JsonNode, key: string): JsonNode | undefined =>
  node.members?.findLast((member) => member.key === key)?.node;

function originOf(root: JsonNode, keyPath: readonly string[], { source }: FileReference): Origin {
  let node: JsonNode = root;
  let at = root.start;
  for (const key of keyPath) {
    const member = node.members?.findLast((each) => each.key === key);
    if (!member) break;
    node = member.node;
    at = member.keyStart;
  }
  return { kind: 'file', path: source.path, line: lineAt(source.text, at) };
}

/** transformers stops at a number that differs from its own argument. Source: integrations/deepspeed.py `fill_match`. */
function mismatches(root: JsonNode, file: FileReference, above: readonly Layer[]): Diagnostic[] {
  const trainer = above.find((layer) => layer.dialect.kind === 'trainer')?.reading.spec;
  return [
    ...otherNumbers(root, file, trainer),
    ...otherPrecision(root, file, trainer),
    ...otherOptimizer(root, file, trainer),
  ];
}

function otherNumbers(root: JsonNode, file: FileReference, trainer: TrainingSpec | undefined): Diagnostic[] {
  return Object.entries(SHARED_KEYS).flatMap(([setting, key]) => {
    const told = trainer?.[setting as SettingName]?.value as FileValue | undefined;
    const written = memberOf(root, key)?.value;
    if (typeof written !== 'number' || typeof told !== 'number' || written === told) return [];
    return [
      warning('deepspeed-mismatch', `${key} is ${written}, and the trainer is told ${told}`, {
        location: formatOrigin(originOf(root, [key], file)),
        help: `write "auto", or ${told} in both places`,
      }),
    ];
  });
}

/** transformers stops where bf16 or fp16 is switched on here and not there. */
function otherPrecision(root: JsonNode, file: FileReference, trainer: TrainingSpec | undefined): Diagnostic[] {
  const told = trainer?.mixedPrecision?.value;
  return (['bf16', 'fp16'] as const).flatMap((name) => {
    const written = enabledIn(memberOf(root, name));
    if (typeof written !== 'boolean' || !told || written === (told === name)) return [];
    const place = trainer?.mixedPrecision?.origin;
    return [
      warning(
        'deepspeed-mismatch',
        `${name} is ${written ? 'on' : 'off'} in the DeepSpeed config, and the trainer computes in ${told === 'no' ? 'fp32' : told}`,
        {
          location: formatOrigin(originOf(root, [name, 'enabled'], file)),
          ...(place ? { notes: [`the trainer's comes from ${formatOrigin(place)}`] } : {}),
          help: `write "enabled": "auto" in ${file.source.path}`,
        },
      ),
    ];
  });
}

/** With an optimizer of its own DeepSpeed never makes the one that the trainer is told. Source: transformers integrations/deepspeed.py. */
function otherOptimizer(root: JsonNode, file: FileReference, trainer: TrainingSpec | undefined): Diagnostic[] {
  const told = trainer?.optim;
  const own = optimizerOf(root);
  if (!own || !told?.value || told.origin.kind === 'default' || told.value === own || /^adamw_torch/.test(told.value))
    return [];
  return [
    warning('deepspeed-mismatch', `the DeepSpeed config brings its own optimizer, so ${told.value} is not used`, {
      location: formatOrigin(originOf(root, ['optimizer', 'type'], file)),
      notes: [`${told.value} comes from ${formatOrigin(told.origin)}`],
      help: `take "optimizer" out of ${file.source.path}`,
    }),
  ];
}

function onDisk(devices: readonly (string | undefined)[], origin: Origin): Diagnostic[] {
  if (!devices.includes('nvme')) return [];
  return [
    warning('nvme-offload', 'what is offloaded to NVMe is counted as host memory here', {
      location: formatOrigin(origin),
    }),
  ];
}
