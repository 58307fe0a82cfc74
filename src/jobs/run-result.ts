import type { Diagnostic } from '../core/index.ts';
import type { AttemptSummary, CheckReport } from '../report/index.ts';
import type { Ending } from './run-record.ts';

/** How `snug run` ended. */
export type RunResult =
  | { readonly kind: 'usage' | 'unreadable'; readonly diagnostics: readonly Diagnostic[] }
  | { readonly kind: 'dry-run'; readonly report: CheckReport; readonly decision: 'start' | 'stop' }
  /** Nothing was started. */
  | { readonly kind: 'stopped'; readonly ending: Ending; readonly report: CheckReport }
  | {
      readonly kind: 'ended';
      readonly ending: Ending;
      readonly attempts: readonly AttemptSummary[];
      readonly runFolder: string;
    };
