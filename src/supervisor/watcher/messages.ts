import type { ProcessId } from '../proc.ts';

/** What snug tells its watcher. The channel's end, without `over` before it, means that snug is gone. */
export type WatcherMessage =
  /** An attempt is about to start. Its processes inherit `SNUG_ATTEMPT=<mark>`. */
  | {
      readonly kind: 'attempt';
      readonly mark: string;
      readonly graceMs: number;
      readonly logPath: string;
      readonly outputDir: string | undefined;
      readonly reportPath: string;
    }
  | { readonly kind: 'leader'; readonly leader: ProcessId; readonly ownSession: boolean }
  /** The reading end of one of the attempt's pipes: by a name it can be opened under as long as snug lives, or along with the message. */
  | { readonly kind: 'stream'; readonly name: 'stdout' | 'stderr'; readonly path?: string }
  /** Processes that were not known before. */
  | { readonly kind: 'members'; readonly members: readonly ProcessId[] }
  /** Nothing of the attempt is left. */
  | { readonly kind: 'released' }
  | { readonly kind: 'over' };

/** Inherited by every process of an attempt; its value is drawn anew for each. */
export const MARK_VARIABLE = 'SNUG_ATTEMPT';

/** What the watcher leaves beside the attempt when it had to end it. */
export interface WatcherReport {
  readonly because: 'snug-is-gone';
  /** ISO 8601. */
  readonly foundAt: string;
  readonly endedAt: string | null;
  readonly graceMs: number;
  /** Pids that even SIGKILL has not ended. */
  readonly left: readonly number[];
}
