import { formatBytes, GiB } from '../../core/index.ts';
import type { Failure } from '../../diagnosis/index.ts';
import type { ShownCards } from '../../hardware/index.ts';
import type { DiagnosisNote } from '../../report/index.ts';

/** Desktops and monitors hold less. */
const WORTH_A_NOTE = GiB / 2;

/** What a saved output of nvidia-smi adds: how full the cards were, and who was on them. */
export const cardNotes = ({ gpus, processes }: ShownCards): readonly DiagnosisNote[] => [
  ...gpus.map(
    ({ index, name, usedBytes, totalBytes }): DiagnosisNote => ({
      id: 'card-now',
      values: { index, name, used: formatBytes(usedBytes), total: formatBytes(totalBytes) },
    }),
  ),
  ...processes
    .filter(({ usedBytes }) => usedBytes >= WORTH_A_NOTE)
    .map(
      ({ index, pid, name, usedBytes }): DiagnosisNote => ({
        id: 'card-process',
        values: { index: index ?? '?', pid, name, size: formatBytes(usedBytes) },
      }),
    ),
];

/**
 * A failure without figures on a card that others were seen on may be theirs; whether the process seen was the run itself, the text
 * does not tell, so it is a candidate and no verdict.
 */
export function withCards(failure: Failure, { processes }: ShownCards): Failure {
  const held = processes.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
  const silent = failure.resource === 'vram' && failure.numbers.totalBytes === undefined;
  if (!silent || held < WORTH_A_NOTE || failure.kind === 'vram_other_process') return failure;
  const others = failure.candidates.filter((kind) => kind !== 'vram_other_process');
  return { ...failure, candidates: ['vram_other_process', ...others] };
}
