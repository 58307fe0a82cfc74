import { type Diagnostic, ok, type Result, warning } from '../../core/index.ts';
import { formatOrigin, type OffloadTarget, type Origin, type SettingName, type Strategy } from '../../spec/index.ts';
import { readDeepSpeedStage } from '../accelerate-config/index.ts';
import type { FileReference, FileValue, Layer, Reading } from '../dialect.ts';
import { type JsonNode, lineAt, parseJson } from '../json-text.ts';

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

const STRATEGIES: readonly Strategy[] = ['ddp', 'zero1', 'zero2', 'zero3'];

/** Stage and offload. `auto` is filled by the trainer from its own arguments; a stage that is not there is 0. */
export function readDeepSpeedConfig(file: FileReference, above: readonly Layer[]): Result<Reading<DeepSpeedDetail>> {
  const { source } = file;
  const parsed = parseJson(source.text, source.path);
  if (!parsed.ok) return parsed;
  const read = readDeepSpeedStage(source);
  if (!read.ok) return read;
  const { stage = 0, optimizerDevice, parameterDevice } = read.value;
  const origin = originOf(parsed.value, ['zero_optimization', 'stage'], file);
  const offload: OffloadTarget[] = [
    ...(isOffload(optimizerDevice) ? (['optimizer'] as const) : []),
    ...(isOffload(parameterDevice) ? (['parameters'] as const) : []),
  ];
  const strategy = stage === 'auto' ? undefined : STRATEGIES[stage];
  const numbers = Object.values(SHARED_KEYS).filter((key) => typeof memberOf(parsed.value, key)?.value === 'number');
  return ok({
    spec: {},
    ...(strategy ? { sharding: { strategy, offload, origin } } : {}),
    files: [file],
    diagnostics: [...mismatches(parsed.value, file, above), ...onDisk([optimizerDevice, parameterDevice], origin)],
    detail: { file, concrete: new Set(numbers) },
  });
}

const isOffload = (device: string | undefined): boolean => device !== undefined && device !== 'none';

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

function onDisk(devices: readonly (string | undefined)[], origin: Origin): Diagnostic[] {
  if (!devices.includes('nvme')) return [];
  return [
    warning('nvme-offload', 'what is offloaded to NVMe is counted as host memory here', {
      location: formatOrigin(origin),
    }),
  ];
}
