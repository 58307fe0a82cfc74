import { formatBytes } from '../core/index.ts';
import { type Distributed, globalBatchSize, type SettingName, type SpecChange, settingKey } from '../spec/index.ts';
import { settingText } from './setting-text.ts';
import { plainSigns, type TextOptions } from './text-options.ts';
import { wrap } from './wrap.ts';

/** Settings that a person reads best first. */
const FIRST: readonly SettingName[] = ['perDeviceTrainBatchSize', 'gradientAccumulationSteps', 'method'];

/** Changes by the lever that makes them, in the order they come; a lever's settings belong together. */
export function groupByLever(changes: readonly SpecChange[]): readonly (readonly SpecChange[])[] {
  const groups = new Map<string, SpecChange[]>();
  for (const change of changes) groups.set(change.lever, [...(groups.get(change.lever) ?? []), change]);
  const rank = ({ setting }: SpecChange): number => (FIRST.indexOf(setting) + FIRST.length + 1) % (FIRST.length + 1);
  return [...groups.values()].map((group) => group.sort((a, b) => rank(a) - rank(b)));
}

function globalBatchNote(group: readonly SpecChange[], distributed: Distributed | undefined): string {
  const micro = group.find(({ setting }) => setting === 'perDeviceTrainBatchSize')?.to;
  const steps = group.find(({ setting }) => setting === 'gradientAccumulationSteps')?.to;
  if (typeof micro !== 'number' || typeof steps !== 'number' || !distributed) return '';
  const rows = globalBatchSize({ perDeviceTrainBatchSize: micro, gradientAccumulationSteps: steps, distributed });
  return ` (global batch ${rows} kept)`;
}

/** `per_device_train_batch_size 8 -> 2, gradient_accumulation_steps 4 -> 16 (global batch 32 kept)`. */
export const movesText = (group: readonly SpecChange[], distributed: Distributed | undefined): string =>
  group
    .map(
      ({ setting, from, to }) => `${settingKey(setting)} ${settingText(setting, from)} -> ${settingText(setting, to)}`,
    )
    .join(', ') + globalBatchNote(group, distributed);

export interface ChangeContext {
  /** For the note that the global batch is kept. */
  readonly distributed: Distributed | undefined;
  /** false: nothing was predicted, so a change has no price. */
  readonly priced: boolean;
}

/** One line a lever: what moves, what it saves and what it costs. */
export function renderChanges(
  changes: readonly SpecChange[],
  context: ChangeContext,
  options: TextOptions,
): readonly string[] {
  return groupByLever(changes).map((group) => {
    const { cost } = group[0]!;
    const savesBytes = group.reduce((sum, change) => sum + change.savesBytes, 0);
    const saves = savesBytes > 0 ? `saves ${formatBytes(savesBytes)}` : 'saves nothing by itself';
    const costs = cost === 'none' ? 'costs nothing' : cost;
    const price = context.priced ? `${saves}, ${costs}` : '';
    const moves = movesText(group, context.distributed);
    return plainSigns(options, wrap(`  ${moves}${price ? `  ${price}` : ''}`, options.width, 6));
  });
}
