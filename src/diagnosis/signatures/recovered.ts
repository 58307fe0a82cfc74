import { readAllocatorText } from '../allocator-report.ts';
import type { Signature } from './signature.ts';

const recovered = (
  id: string,
  pattern: RegExp,
  hints: readonly string[],
  more: Partial<Signature> = {},
): Signature => ({
  id,
  role: 'recovered',
  kind: 'vram_capacity',
  resource: 'vram',
  place: 'line',
  pattern,
  hints,
  confidence: 'medium',
  read: readAllocatorText,
  ...more,
});

/** A trainer met the limit and went on. Looked at first: these lines quote the allocator's text. */
export const recoveredFrom: readonly Signature[] = [
  recovered(
    'skipped-batch',
    /[Rr]an out of memory(?: with exception|, (?:skipping|retrying)|.*skip)|OOM: Ran out of memory|attempting to recover from OOM/,
    ['an out of memory', 'recover from OOM'],
  ),
  recovered('micro-batch-lowered', /(?:out of memory|allocation retries).{0,80}microbatch size will be decreased/i, [
    'microbatch size will be',
    'Microbatch size will be',
  ]),
  recovered('batch-size-search', /Batch size \d+ failed, trying batch size/, ['failed, trying batch size']),
  recovered(
    'autotune-skip',
    /(?:out of memory|OutOfResources|OutOfMemory\w*|out of resource).{0,200}(?:[Ii]gnoring this choice|skipping (?:this )?choice)|[Ss]kipping (?:this )?choice.{0,200}(?:out of memory|OutOfResources|OutOfMemory)/,
    ['gnoring this choice', 'kipping'],
  ),
  recovered(
    'clone-failed-on-save',
    /UserWarning: Failed to clone\(\) tensor with name .*out of memory/,
    ['Failed to clone()'],
    {
      kind: 'vram_checkpoint_save_spike',
      confidence: 'high',
    },
  ),
  recovered('allocator-pressure', /pytorch allocator cache flushes since last step/, ['allocator cache flushes']),
];
