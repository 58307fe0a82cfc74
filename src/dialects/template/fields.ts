import type { Origin } from '../../spec/index.ts';
import type { FieldKind, Grammar } from '../hf-argparser/grammar.ts';

/** What holds where a command says nothing: one record a release whose defaults moved, named by the first that has them. */
export const TOOL_1_0: Origin = { kind: 'default', tool: 'tool', version: '1.0' };

/** Flags that are read. `bool`: a switch; `value`: one value; `list`: several. */
const FIELDS: ReadonlyMap<string, FieldKind> = new Map([
  ['model', 'value'],
  ['rows', 'value'],
  ['accumulate', 'value'],
  ['tokens', 'value'],
  ['lr', 'value'],
  ['recompute', 'bool'],
]);

/** Of those, the ones without effect on memory. */
export const IDLE: ReadonlySet<string> = new Set(['lr']);

export const GRAMMAR: Grammar = { fields: FIELDS, negatable: new Set(), open: true };
