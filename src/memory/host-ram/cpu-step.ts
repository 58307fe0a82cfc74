import type { Phase } from '../estimate.ts';
import type { WalkedRun } from '../walk-run.ts';

/**
 * Resident bytes of one rank's training step on a CPU. glibc gives blocks below 32 MiB (its largest dynamic mmap threshold,
 * malloc/malloc.c) back from the end of its heap only, so unlike on a device nothing makes room for what comes later: weights,
 * states and gradients lie above the heights that forward and backward pass have left behind.
 */
export function cpuStep({ residents, step }: Pick<WalkedRun, 'residents' | 'step'>): number {
  const { weightBytes, gradientBytes, optimizer, communicationBytes, referenceBytes } = residents;
  const lasting = weightBytes + referenceBytes + optimizer.statesBytes + communicationBytes;
  const phases = step.timeline.phases();
  const above = (phase: Phase, floor: number): number =>
    Math.max(0, (phases.find((one) => one.phase === phase)?.bytes ?? 0) - floor);
  return (
    lasting +
    gradientBytes +
    above('forward', lasting) +
    Math.max(above('backward', lasting + gradientBytes), optimizer.temporaryBytes)
  );
}
