import { maskKnown } from '../mask-known.ts';
import { maskSecrets } from '../mask-secrets.ts';
import type { RunEvent } from '../run-event.ts';
import { changeJson } from './check-json.ts';
import { estimateBody } from './estimate-json.ts';
import { snakeCased } from './snake-case.ts';

/** One line of `snug run --json` on stderr: the event with snake_case names, changes and estimates in their usual JSON forms. */
export function runEventJson(event: RunEvent): object {
  const { kind, ...rest } = event;
  const parts = Object.entries(rest).map(([name, value]) => {
    if (value === undefined) return [name, null];
    if (name === 'changes' && 'changes' in event) return [name, event.changes.map(changeJson)];
    if (name === 'predicted' && 'predicted' in event)
      return [name, event.predicted ? estimateBody(event.predicted) : null];
    if (name === 'argv' && 'argv' in event) return [name, maskSecrets(event.argv)];
    return [name, value];
  });
  return { event: kind, ...maskKnown(snakeCased(Object.fromEntries(parts)) as object, []) };
}
