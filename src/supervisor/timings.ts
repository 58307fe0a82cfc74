/** How long things may take, milliseconds. */
export const defaultTimings = {
  /** A launcher that notices the dead rank (torchrun polls every 0.1 s, DeepSpeed every 1 s) ends the others well within this; NCCL's own watchdog would take 10 to 30 minutes. */
  fatalLineGraceMs: 10_000,
  /** Torchrun itself waits 30 s for its workers before it kills them; less would take that away from it. */
  stopGraceMs: 30_000,
  /** After an OOM nobody saves anything worth the full grace. */
  afterOomGraceMs: 10_000,
  /** How much longer than its grace a tree may live while it is saving: 100 GB onto a slow volume. */
  saveLimitMs: 600_000,
  /** Between two looks whether it still is. */
  saveLookMs: 2_000,
  /** Silence worth telling of: longer than an evaluation or a tokenizer without a bar usually is. */
  stallMs: 30 * 60_000,
  /** Short enough to see a peak of a few steps, long enough to cost nothing. */
  sampleEveryMs: 1_000,
  /** After the direct child: a data-loader worker looks for its parent every 5 s, loggers upload their last lines. */
  drainMs: 10_000,
  /** From SIGTERM for the launcher to SIGTERM for what it has not passed the signal on to. */
  passOnMs: 5_000,
  /** After SIGKILL: a driver may need seconds to take a context apart; what is left after this sits in uninterruptible sleep. */
  killWaitMs: 20_000,
} as const;
