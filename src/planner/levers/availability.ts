import { assertNever } from '../../core/index.ts';
import { type PlanValues, type SettingName, settingKey } from '../../spec/index.ts';
import type { Surroundings } from '../plan.ts';
import type { Lever, LeverNeed } from './lever.ts';

/** What people know the packages as. */
const MODULES: Readonly<Record<keyof Surroundings['packages'], string>> = {
  bitsandbytes: 'bitsandbytes',
  flashAttn: 'flash_attn',
  liger: 'liger_kernel',
};

const SHARDED = ['zero3', 'fsdp1', 'fsdp2', 'hsdp'];

function obstacle(need: LeverNeed, values: PlanValues, surroundings: Surroundings): string | undefined {
  switch (need.kind) {
    case 'package': {
      const present = surroundings.packages[need.name];
      if (present === 'unknown') {
        return need.whenUnknown === 'present' ? undefined : `whether ${MODULES[need.name]} imports is not known`;
      }
      return present ? undefined : `${MODULES[need.name]} does not import in the trainer's Python`;
    }
    case 'platform':
      return surroundings.platform === need.name ? undefined : `works on ${need.name} only`;
    case 'whole-parameters': {
      const { strategy, offload } = values.distributed;
      if (SHARDED.includes(strategy)) return `${need.what} does not go with parameters sharded by ${strategy}`;
      const moved = offload.find((target) => target !== 'activations');
      return moved ? `${need.what} does not go with ${moved} offload` : undefined;
    }
    default:
      return assertNever(need);
  }
}

/** The settings of a set of new values that differ from the old ones. */
export const changedSettings = (from: PlanValues, set: Partial<PlanValues>): readonly (keyof PlanValues)[] =>
  (Object.keys(set) as (keyof PlanValues)[]).filter((name) => JSON.stringify(set[name]) !== JSON.stringify(from[name]));

/** What a lever sets, and the precision that earlier ones have set: one key of a tool may stand for several of these. */
export const setTogether = ({ dtype, mixedPrecision }: PlanValues, set: Partial<PlanValues>): Partial<PlanValues> => ({
  dtype,
  mixedPrecision,
  ...set,
});

/** What a lever can set here after its needs and the launch's own say, mildest first; a string is the reason for none. */
export function availableOptions(
  lever: Lever,
  values: PlanValues,
  surroundings: Surroundings,
): readonly Partial<PlanValues>[] | string {
  const options = lever.options(values, surroundings);
  if (typeof options === 'string' || options.length === 0) return options;
  for (const need of lever.needs) {
    const reason = obstacle(need, values, surroundings);
    if (reason) return reason;
  }
  const refused = (set: Partial<PlanValues>): string | undefined => {
    const together = setTogether(values, set);
    for (const name of changedSettings(values, set)) {
      const answer = surroundings.writable(name as SettingName, set[name], together);
      if (answer !== true) return `${settingKey(name)}: ${answer}`;
    }
    return undefined;
  };
  const usable = options.filter((set) => refused(set) === undefined);
  return usable.length > 0 ? usable : refused(options[0]!)!;
}

/** What a lever would set that the launch cannot be told; none: nothing, or something else stands in its way. */
export function untoldSettings(lever: Lever, values: PlanValues, surroundings: Surroundings): readonly SettingName[] {
  if (typeof availableOptions(lever, values, surroundings) !== 'string') return [];
  const options = availableOptions(lever, values, { ...surroundings, writable: () => true });
  const [mildest] = typeof options === 'string' ? [] : options;
  if (!mildest) return [];
  return changedSettings(values, mildest)
    .map((name) => name as SettingName)
    .filter(
      (name) => surroundings.writable(name, mildest[name as keyof PlanValues], setTogether(values, mildest)) !== true,
    );
}
