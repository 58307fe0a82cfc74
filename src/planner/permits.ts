import { LEVER_CLASSES, type LeverClass } from '../spec/index.ts';
import type { Lever } from './levers/index.ts';
import type { Policy, Surroundings } from './plan.ts';

/** Whether the user lets this lever be pulled. */
export const permits = ({ allow, forbid }: Pick<Policy, 'allow' | 'forbid'>, lever: Lever): boolean =>
  !forbid.includes(lever.id) &&
  !forbid.includes(lever.class) &&
  (allow.includes(lever.class) || allow.includes(lever.id));

/** Classes a user could still allow. */
export const furtherClasses = ({ allow, forbid }: Pick<Policy, 'allow' | 'forbid'>): readonly LeverClass[] =>
  LEVER_CLASSES.filter((leverClass) => !allow.includes(leverClass) && !forbid.includes(leverClass));

/** The surroundings with settings that are to stay as they are. */
export const keeping = (surroundings: Surroundings, keep: Policy['keep']): Surroundings =>
  keep.length === 0
    ? surroundings
    : {
        ...surroundings,
        writable: (setting, to, together) =>
          keep.includes(setting) ? 'kept as told' : surroundings.writable(setting, to, together),
      };
